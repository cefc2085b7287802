"""A Django project with REST framework in one file, with views for every kind of failure."""

from inspect import iscoroutinefunction

import django
from django.conf import settings

from tests.http.seats import SeatTaken

if not settings.configured:
    settings.configure(
        SECRET_KEY="for tests only",
        DEBUG=False,
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=__name__,
        USE_TZ=True,
        INSTALLED_APPS=["rest_framework"],
        MIDDLEWARE=[
            "amends.bindings.django.ProblemMiddleware",
            "django.middleware.security.SecurityMiddleware",
            f"{__name__}.refusing",
            "django.middleware.clickjacking.XFrameOptionsMiddleware",
        ],
        REST_FRAMEWORK={
            "EXCEPTION_HANDLER": "amends.bindings.django.exception_handler",
            "DEFAULT_AUTHENTICATION_CLASSES": [],
            "DEFAULT_PERMISSION_CLASSES": [],
            "UNAUTHENTICATED_USER": None,
            "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
        },
        LOGGING_CONFIG=None,
        AMENDS={"errors": {SeatTaken: "CONFLICT"}},
    )
    django.setup()

from django import forms
from django.core.asgi import get_asgi_application
from django.core.exceptions import PermissionDenied
from django.core.validators import RegexValidator
from django.core.wsgi import get_wsgi_application
from django.http import Http404, HttpResponseNotAllowed, JsonResponse
from django.urls import path
from django.utils.decorators import sync_and_async_middleware
from rest_framework import authentication, exceptions, permissions, serializers, views
from rest_framework.response import Response

from amends.bindings.django import check_form
from amends.errors import RateLimitedError, ServiceUnavailableError, ValidationError
from amends.http.batch import run, run_sync


@sync_and_async_middleware
def refusing(get_response):
    """Middleware that raises if the request has the header x-refuse."""

    def checked(request):
        if request.headers.get("x-refuse") == "typed":
            raise RateLimitedError("Not so fast", retry_after=3, headers={"X-Shop": "north"})
        if request.headers.get("x-refuse") == "lost":
            raise ConnectionResetError("s3cr3t of a database")
        if "x-refuse" in request.headers:
            raise ValueError("s3cr3t of a middleware")
        return get_response(request)

    async def achecked(request):
        return await checked(request)

    return achecked if iscoroutinefunction(get_response) else checked


def ok(request):
    return JsonResponse({"fine": True})


def busy(request):
    raise ServiceUnavailableError("Back in a moment", retry_after=0.2)


async def abusy(request):
    raise ServiceUnavailableError("Back in a moment", retry_after=0.2)


def broken(request):
    raise RuntimeError("s3cr3t in the database")


def seat(request):
    raise SeatTaken("s3cr3t seat")


class OrderForm(forms.Form):
    amount = forms.IntegerField(min_value=0)
    currency = forms.ChoiceField(choices=[("EUR", "Euro"), ("More", [("USD", "Dollar"), ("GBP", "Pound")])])
    name = forms.CharField(min_length=2)
    code = forms.RegexField("^[A-Z]+$")
    password = forms.CharField(min_length=8)
    day = forms.DateField()

    def clean(self):
        if len(self.data.get("name", "")) == 1:
            self.add_error("name", "A name is not one letter")
        if "account" not in self.data:
            raise forms.ValidationError("Start with an account")


class GuestForm(forms.Form):
    name = forms.RegexField("^[a-z]+$")
    seat = forms.CharField(error_messages={"required": "Choose a seat first"})
    row = forms.CharField(validators=[RegexValidator("^[A-F]$")])

    def clean_name(self):
        if self.cleaned_data["name"] == "bob":
            raise forms.ValidationError("Bob has a table already")
        if self.cleaned_data["name"] == "robot":
            raise forms.ValidationError("People only", code="required")


def guests(request):
    check_form(forms.formset_factory(GuestForm)(request.POST, prefix="guest"))


class Guest(serializers.Serializer):
    name = serializers.RegexField("^[a-z]+$")
    seat = serializers.CharField(error_messages={"required": "Choose a seat first"})
    row = serializers.CharField(validators=[RegexValidator("^[A-F]$")])

    def validate_name(self, value):
        if value == "bob":
            raise serializers.ValidationError("Bob has a table already")
        if value == "robot":
            raise serializers.ValidationError("People only", code="required")
        return value


class Guests(views.APIView):
    def post(self, request):
        Guest(data=request.data, many=True).is_valid(raise_exception=True)


def form(request):
    return JsonResponse({"amount": check_form(OrderForm(request.POST))["amount"]})


def lost(request):
    raise Http404("s3cr3t row")


def forbidden(request):
    raise PermissionDenied


def only_post(request):
    return HttpResponseNotAllowed(["POST"])


def make(item):
    if item == "bad":
        raise ValidationError("'amount' is required", field="/amount")
    if item == "busy":
        raise ServiceUnavailableError(retry_after=2)
    if item == "seat":
        raise SeatTaken("s3cr3t seat")
    return {"made": item}


def answer(done):
    return JsonResponse(done.body(), status=done.status, headers=done.headers, content_type=done.media_type)


def batch(request):
    return answer(run_sync(request.GET.getlist("item"), make))


async def abatch(request):
    return answer(await run(request.GET.getlist("item"), make))


class Batches(views.APIView):
    def post(self, request):
        done = run_sync(request.query_params.getlist("item"), make)
        return Response(done.body(), done.status, headers=done.headers, content_type=done.media_type)


class Line(serializers.Serializer):
    sku = serializers.CharField(min_length=2)


class Order(serializers.Serializer):
    amount = serializers.FloatField(min_value=0)
    currency = serializers.ChoiceField(["EUR", "USD"])
    code = serializers.RegexField("^[A-Z]+$")
    lines = Line(many=True)
    tags = serializers.ListField(child=serializers.CharField(max_length=3), max_length=2)
    password = serializers.CharField(min_length=8)

    def validate(self, data):
        if not data["lines"]:
            raise serializers.ValidationError("An order has lines")
        return data


class Orders(views.APIView):
    def post(self, request):
        order = Order(data=request.data)
        order.is_valid(raise_exception=True)
        return Response(order.data, status=201)

    def get(self, request):
        kind = request.query_params.get("kind")
        if kind == "throttled":
            throttled = exceptions.Throttled(wait=3)
            throttled.wait = float(request.query_params.get("wait", "3"))
            raise throttled
        if kind == "broken":
            raise RuntimeError("s3cr3t of a view")
        if kind == "busy":
            raise ServiceUnavailableError("Back in a moment", retry_after=2)
        if kind == "lost":
            raise Http404("s3cr3t row")
        if kind == "forbidden":
            raise PermissionDenied("s3cr3t rule")
        raise exceptions.PermissionDenied("Ask Ann for access")


class Basic(authentication.BaseAuthentication):
    def authenticate(self, request):
        return None

    def authenticate_header(self, request):
        return 'Basic realm="shop"'


class Account(views.APIView):
    authentication_classes = (Basic,)
    permission_classes = (permissions.IsAuthenticated,)


urlpatterns = [
    path("ok", ok),
    path("busy", busy),
    path("abusy", abusy),
    path("broken", broken),
    path("lost", lost),
    path("seat", seat),
    path("form", form),
    path("guests", guests),
    path("api/guests", Guests.as_view()),
    path("forbidden", forbidden),
    path("only-post", only_post),
    path("orders", Orders.as_view()),
    path("account", Account.as_view()),
    path("batch", batch),
    path("abatch", abatch),
    path("batches", Batches.as_view()),
]

wsgi = get_wsgi_application()
asgi = get_asgi_application()
