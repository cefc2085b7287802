"""AdCP's standard codes (S4), one exception each."""

# Written by scripts/generate_errors.py from the vocabulary tables: change those, then `make generate`.

from __future__ import annotations

from amends import errors as everyday
from amends.errors.base import FaultError

__all__ = [
    "AccountAmbiguousError",
    "AccountIdentityConflictError",
    "AccountMovedError",
    "AccountNotFoundError",
    "AccountPaymentRequiredError",
    "AccountRequiredError",
    "AccountSetupRequiredError",
    "AccountSuspendedError",
    "ActionNotAllowedError",
    "AgentBlockedError",
    "AgentSuspendedError",
    "AmbiguousBiddingPolicyError",
    "AudienceTooSmallError",
    "AuthInvalidError",
    "AuthMissingError",
    "AuthRequiredError",
    "AuthorizationRequiredError",
    "BiddingPlacementConflictError",
    "BillingNotPermittedForAgentError",
    "BillingNotSupportedError",
    "BillingOutOfBandError",
    "BrandRequiredError",
    "BudgetCapReachedError",
    "BudgetExceededError",
    "BudgetExhaustedError",
    "BudgetTooLowError",
    "CampaignSuspendedError",
    "CatalogLimitExceededError",
    "CommittedResourcePurgedError",
    "ComplianceUnsatisfiedError",
    "ConfigurationError",
    "ConflictError",
    "ConflictingSelectorsError",
    "CreativeDeadlineExceededError",
    "CreativeInaccessibleError",
    "CreativeLocaleNotAcceptedError",
    "CreativeMissingClickUrlError",
    "CreativeNotFoundError",
    "CreativeRejectedError",
    "CreativeRepresentationUnresolvedError",
    "CreativeRevisionContentMismatchError",
    "CreativeSizeMismatchError",
    "CreativeValidationFailedGenericError",
    "CreativeValueNotAllowedError",
    "CredentialInArgsError",
    "CursorExpiredError",
    "EvaluatorAgentNotAcceptedError",
    "FeedFetchFailedError",
    "FieldNotPermittedError",
    "FormatDeclarationDivergentError",
    "FormatDeclarationV1AmbiguousError",
    "FormatDeclarationV1LossyMultiSizeError",
    "FormatNotSupportedError",
    "FormatOptionUnresolvedError",
    "FormatProjectionFailedError",
    "FormatShapePromotedError",
    "GovernanceAgentNotAcceptedError",
    "GovernanceDeniedError",
    "GovernanceUnavailableError",
    "IdempotencyConflictError",
    "IdempotencyExpiredError",
    "IdempotencyInFlightError",
    "InvalidFeedFormatError",
    "InvalidPricingOptionError",
    "InvalidRequestError",
    "InvalidStateError",
    "InvalidUsageDataError",
    "IoRequiredError",
    "ItemValidationFailedError",
    "MacroResolutionFailedError",
    "MediaBuyNotFoundError",
    "MultiFinalizeUnsupportedError",
    "NotCancellableError",
    "PackageNotFoundError",
    "PaymentTermsNotSupportedError",
    "PermissionDeniedError",
    "PixelTrackerLossyDowngradeError",
    "PixelTrackerUpgradeInferredError",
    "PlaceTargetUnavailableError",
    "PlanNotFoundError",
    "PolicyViolationError",
    "PrivateFieldInPublicPlacementError",
    "ProductExpiredError",
    "ProductNotFoundError",
    "ProductUnavailableError",
    "ProposalExpiredError",
    "ProposalNotCommittedError",
    "ProposalNotFoundError",
    "ProvenanceClaimContradictedError",
    "ProvenanceDigitalSourceTypeMissingError",
    "ProvenanceDisclosureMissingError",
    "ProvenanceEmbeddedMissingError",
    "ProvenanceRequiredError",
    "ProvenanceSyntheticDepictionMissingError",
    "ProvenanceVerifierNotAcceptedError",
    "RateLimitedError",
    "ReadOnlyScopeError",
    "ReferenceNotFoundError",
    "RequoteRequiredError",
    "ScopeInsufficientError",
    "ServiceUnavailableError",
    "SessionNotFoundError",
    "SessionTerminatedError",
    "SignalNotFoundError",
    "SignalTargetingIncompatibleError",
    "SignedResponseEnvelopeExpiredError",
    "SignedResponseRequestHashMismatchError",
    "SignedResponseTenantMismatchError",
    "SourceAccessFailedError",
    "StaleResponseError",
    "TermsRejectedError",
    "UnpriceableOutputError",
    "UnsupportedFeatureError",
    "UnsupportedGranularityError",
    "UnsupportedProvisioningError",
    "ValidationError",
    "VastParseFailedError",
    "VastVersionMismatchError",
    "VastWrapperDepthExceededError",
    "VersionUnsupportedError",
]


class InvalidRequestError(FaultError):
    """The request is malformed or incomplete (correctable). Compare the request with its schema, correct it, then send it again."""

    code = "INVALID_REQUEST"
    vocabulary = "adcp"


class AuthRequiredError(FaultError):
    """Credentials are missing or were not accepted (correctable). Supply credentials if none were sent; have them renewed if they were refused."""

    code = "AUTH_REQUIRED"
    vocabulary = "adcp"


class AuthMissingError(FaultError):
    """The request carried no credentials (correctable). Send the same request with credentials."""

    code = "AUTH_MISSING"
    vocabulary = "adcp"


class AuthInvalidError(FaultError):
    """The credentials were refused (terminal). Stop sending them; refresh an expired token once, otherwise have the credentials replaced."""

    code = "AUTH_INVALID"
    vocabulary = "adcp"


class AuthorizationRequiredError(FaultError):
    """A connected platform has not given its consent to this (correctable). Have the missing connection made or renewed, then send the request again."""

    code = "AUTHORIZATION_REQUIRED"
    vocabulary = "adcp"


class RateLimitedError(everyday.RateLimitedError):
    """Too many requests (transient). Wait for the stated time, then send the same request again."""

    code = "RATE_LIMITED"
    vocabulary = "adcp"


class ServiceUnavailableError(everyday.ServiceUnavailableError):
    """The service is unavailable for now (transient). Try again later, waiting longer each time."""

    code = "SERVICE_UNAVAILABLE"
    vocabulary = "adcp"


class ConfigurationError(FaultError):
    """The seller's service is set up wrongly (terminal). Do not repeat it; report it to whoever runs the service."""

    code = "CONFIGURATION_ERROR"
    vocabulary = "adcp"


class PolicyViolationError(FaultError):
    """The request breaks an advertising policy (correctable). Read the policy, change what breaks it, then send the request again."""

    code = "POLICY_VIOLATION"
    vocabulary = "adcp"


class ProductNotFoundError(FaultError):
    """No such product for this account (correctable). Search for products again, and leave out the ones that cannot be resolved."""

    code = "PRODUCT_NOT_FOUND"
    vocabulary = "adcp"


class ProductUnavailableError(FaultError):
    """The product cannot be bought any more (correctable). Choose another product."""

    code = "PRODUCT_UNAVAILABLE"
    vocabulary = "adcp"


class ProposalExpiredError(FaultError):
    """The proposal has run out, and any hold on inventory with it (correctable). Ask for a new proposal and finalize that one."""

    code = "PROPOSAL_EXPIRED"
    vocabulary = "adcp"


class BudgetTooLowError(FaultError):
    """The budget is below what the seller accepts (correctable). Raise the budget, or choose a product with a lower minimum."""

    code = "BUDGET_TOO_LOW"
    vocabulary = "adcp"


class CreativeRejectedError(FaultError):
    """The creative did not pass review (correctable). Change the creative as the reasons say, then submit it again."""

    code = "CREATIVE_REJECTED"
    vocabulary = "adcp"


class CreativeSizeMismatchError(FaultError):
    """The creative's size fits none of the chosen packages (correctable). Submit the creative in a size that every chosen package takes."""

    code = "CREATIVE_SIZE_MISMATCH"
    vocabulary = "adcp"


class CreativeMissingClickUrlError(FaultError):
    """The creative has no address to lead to (correctable). Add the address a click should open, then submit it again."""

    code = "CREATIVE_MISSING_CLICK_URL"
    vocabulary = "adcp"


class CreativeValidationFailedGenericError(FaultError):
    """The creative did not pass its technical checks (correctable). Correct what the message names, then submit the creative again."""

    code = "CREATIVE_VALIDATION_FAILED_GENERIC"
    vocabulary = "adcp"


class CreativeLocaleNotAcceptedError(FaultError):
    """The creative has no version in an accepted language (correctable). Supply a version in a language the format takes, or choose other placements."""

    code = "CREATIVE_LOCALE_NOT_ACCEPTED"
    vocabulary = "adcp"


class CreativeValueNotAllowedError(FaultError):
    """A text of the creative is not one of the permitted values (correctable). Take one of the values the format lists, then submit it again."""

    code = "CREATIVE_VALUE_NOT_ALLOWED"
    vocabulary = "adcp"


class UnsupportedFeatureError(FaultError):
    """The seller does not offer a feature that was asked for (correctable). Read the seller's capabilities, and leave out what is not among them."""

    code = "UNSUPPORTED_FEATURE"
    vocabulary = "adcp"


class UnpriceableOutputError(FaultError):
    """There is no price for the requested output (correctable). Ask for an output that has a price."""

    code = "UNPRICEABLE_OUTPUT"
    vocabulary = "adcp"


class UnsupportedGranularityError(FaultError):
    """Reports are not available at this granularity (correctable). Choose a granularity the product reports in, or leave it out."""

    code = "UNSUPPORTED_GRANULARITY"
    vocabulary = "adcp"


class UnsupportedProvisioningError(FaultError):
    """The seller does not set up accounts this way (correctable). Refer to the account in the form the seller supports."""

    code = "UNSUPPORTED_PROVISIONING"
    vocabulary = "adcp"


class AudienceTooSmallError(FaultError):
    """The audience is too small to target (correctable). Widen the targeting, or add members to the audience."""

    code = "AUDIENCE_TOO_SMALL"
    vocabulary = "adcp"


class AccountRequiredError(FaultError):
    """The request does not say for which account it is (correctable). Name the account, or something that belongs to one."""

    code = "ACCOUNT_REQUIRED"
    vocabulary = "adcp"


class AccountNotFoundError(FaultError):
    """The account could not be resolved (terminal). List the accounts this caller may use, or ask the seller."""

    code = "ACCOUNT_NOT_FOUND"
    vocabulary = "adcp"


class AccountMovedError(FaultError):
    """The account is now known under another reference (correctable). Take the current reference from the details, then send it as a new request."""

    code = "ACCOUNT_MOVED"
    vocabulary = "adcp"


class AccountIdentityConflictError(FaultError):
    """The account cannot take on this identity (correctable). Choose another identity, or keep the present one; repeating it will not help."""

    code = "ACCOUNT_IDENTITY_CONFLICT"
    vocabulary = "adcp"


class AccountSetupRequiredError(FaultError):
    """The account is not fully set up (correctable). Have the remaining set-up steps completed, then send the request again."""

    code = "ACCOUNT_SETUP_REQUIRED"
    vocabulary = "adcp"


class AccountAmbiguousError(FaultError):
    """The account is not named precisely enough (correctable). Name the account by its id, or describe it more closely."""

    code = "ACCOUNT_AMBIGUOUS"
    vocabulary = "adcp"


class AccountPaymentRequiredError(FaultError):
    """The account has to be paid up first (terminal). Have the account's owner settle the open amount."""

    code = "ACCOUNT_PAYMENT_REQUIRED"
    vocabulary = "adcp"


class AccountSuspendedError(FaultError):
    """The account is suspended (terminal). Stop, and have the suspension cleared up with the seller."""

    code = "ACCOUNT_SUSPENDED"
    vocabulary = "adcp"


class ComplianceUnsatisfiedError(FaultError):
    """The format cannot show a disclosure the brief requires (correctable). Choose a format that can show it, or change the brief."""

    code = "COMPLIANCE_UNSATISFIED"
    vocabulary = "adcp"


class GovernanceDeniedError(FaultError):
    """The governance agent refused the transaction (correctable). Change the purchase to fit the rules, or have a person with spending authority decide."""

    code = "GOVERNANCE_DENIED"
    vocabulary = "adcp"


class BudgetExhaustedError(FaultError):
    """The budget is spent (terminal). Have funds added or the budget raised."""

    code = "BUDGET_EXHAUSTED"
    vocabulary = "adcp"


class BudgetExceededError(FaultError):
    """This would cost more than the budget allows (correctable). Ask for less, or allocate more budget."""

    code = "BUDGET_EXCEEDED"
    vocabulary = "adcp"


class BudgetCapReachedError(FaultError):
    """Production stopped at the spending limit of the request (correctable). Raise the limit of the request, or ask for fewer items."""

    code = "BUDGET_CAP_REACHED"
    vocabulary = "adcp"


class ConflictError(everyday.ConflictError):
    """Something else changed it at the same time (transient). Read the current state, then send the request again on top of it."""

    code = "CONFLICT"
    vocabulary = "adcp"


class CommittedResourcePurgedError(FaultError):
    """The change took effect, but what it changed has been removed since (terminal). Never repeat it; compare your records with the seller's before starting anew."""

    code = "COMMITTED_RESOURCE_PURGED"
    vocabulary = "adcp"


class IdempotencyConflictError(FaultError):
    """The idempotency key was already used for a different request (correctable). Use a new key for a new request, or repeat the original one exactly."""

    code = "IDEMPOTENCY_CONFLICT"
    vocabulary = "adcp"


class IdempotencyExpiredError(FaultError):
    """The repeat came too late to be recognised safely (correctable). Find out whether the first request succeeded; only if not, send it with a new key."""

    code = "IDEMPOTENCY_EXPIRED"
    vocabulary = "adcp"


class IdempotencyInFlightError(FaultError):
    """The first request with this key has not finished (transient). Wait, then repeat it with the same key; a new key could do it twice."""

    code = "IDEMPOTENCY_IN_FLIGHT"
    vocabulary = "adcp"


class CursorExpiredError(FaultError):
    """The position in the list of changes is too old (correctable). Start from a new checkpoint, and read the full state again."""

    code = "CURSOR_EXPIRED"
    vocabulary = "adcp"


class CreativeDeadlineExceededError(FaultError):
    """The deadline for creative changes has passed (correctable). Ask the seller for more time, or leave the creative as it is."""

    code = "CREATIVE_DEADLINE_EXCEEDED"
    vocabulary = "adcp"


class CreativeInaccessibleError(FaultError):
    """The creative's files could not be fetched (correctable). Make the files reachable without credentials, then submit the creative again."""

    code = "CREATIVE_INACCESSIBLE"
    vocabulary = "adcp"


class CreativeRevisionContentMismatchError(FaultError):
    """This revision was already submitted with other content (correctable). Send the original content, or give the changed content a new revision."""

    code = "CREATIVE_REVISION_CONTENT_MISMATCH"
    vocabulary = "adcp"


class InvalidStateError(FaultError):
    """This is not possible in the present state (correctable). Read the current status, then adjust the request."""

    code = "INVALID_STATE"
    vocabulary = "adcp"


class MediaBuyNotFoundError(FaultError):
    """No such media buy for this caller (correctable). List the media buys, and check the identifier."""

    code = "MEDIA_BUY_NOT_FOUND"
    vocabulary = "adcp"


class NotCancellableError(FaultError):
    """This cannot be cancelled now (correctable). Read the seller's terms for cancelling, or ask the seller."""

    code = "NOT_CANCELLABLE"
    vocabulary = "adcp"


class PackageNotFoundError(FaultError):
    """No such package in this media buy (correctable). Read the media buy, and check the package's identifier."""

    code = "PACKAGE_NOT_FOUND"
    vocabulary = "adcp"


class PlaceTargetUnavailableError(FaultError):
    """A targeted place can no longer be served (correctable). Look the place up again, and update the targeting on purpose."""

    code = "PLACE_TARGET_UNAVAILABLE"
    vocabulary = "adcp"


class CreativeNotFoundError(FaultError):
    """No such creative in the library (correctable). List the creatives and check the identifier, or upload the creative first."""

    code = "CREATIVE_NOT_FOUND"
    vocabulary = "adcp"


class SignalNotFoundError(FaultError):
    """No such signal for this account (correctable). Search the signals this agent offers, and check the reference."""

    code = "SIGNAL_NOT_FOUND"
    vocabulary = "adcp"


class SignalTargetingIncompatibleError(FaultError):
    """The creative was made for another condition than the package targets (correctable). Put it into a package that matches, or build a creative for this package."""

    code = "SIGNAL_TARGETING_INCOMPATIBLE"
    vocabulary = "adcp"


class ReferenceNotFoundError(FaultError):
    """Something the request refers to could not be resolved (correctable). Check the identifier, and whether this caller may use it."""

    code = "REFERENCE_NOT_FOUND"
    vocabulary = "adcp"


class SessionNotFoundError(FaultError):
    """No such session (correctable). Start a new session."""

    code = "SESSION_NOT_FOUND"
    vocabulary = "adcp"


class PlanNotFoundError(FaultError):
    """No such governance plan for this caller (correctable). Check the plan's identifier; a new plan has to be registered before its first use."""

    code = "PLAN_NOT_FOUND"
    vocabulary = "adcp"


class SessionTerminatedError(FaultError):
    """The session has ended (correctable). Start a new session; this one takes no more messages."""

    code = "SESSION_TERMINATED"
    vocabulary = "adcp"


class ValidationError(everyday.ValidationError):
    """A value in the request is not acceptable (correctable). Correct the named field, then send the request again."""

    code = "VALIDATION_ERROR"
    vocabulary = "adcp"


class ProductExpiredError(FaultError):
    """The product's offer has run out (correctable). Search for products again and use what is on offer now."""

    code = "PRODUCT_EXPIRED"
    vocabulary = "adcp"


class ProposalNotCommittedError(FaultError):
    """The proposal is still a draft (correctable). Finalize the proposal, then accept it."""

    code = "PROPOSAL_NOT_COMMITTED"
    vocabulary = "adcp"


class ProposalNotFoundError(FaultError):
    """No such proposal (correctable). Ask for a new proposal, finalize it, then accept that one."""

    code = "PROPOSAL_NOT_FOUND"
    vocabulary = "adcp"


class MultiFinalizeUnsupportedError(FaultError):
    """The seller cannot finalize several proposals at once (correctable). Finalize the proposals one at a time."""

    code = "MULTI_FINALIZE_UNSUPPORTED"
    vocabulary = "adcp"


class IoRequiredError(FaultError):
    """The proposal needs an accepted insertion order (correctable). Have the insertion order reviewed and accepted, then send its acceptance along."""

    code = "IO_REQUIRED"
    vocabulary = "adcp"


class TermsRejectedError(FaultError):
    """The seller does not accept the proposed measurement terms (correctable). Change the terms, or leave them out to take the product's own."""

    code = "TERMS_REJECTED"
    vocabulary = "adcp"


class BiddingPlacementConflictError(FaultError):
    """The bidding rules cannot be applied at the levels chosen (correctable). Set bidding at a level the provider supports, or choose other products."""

    code = "BIDDING_PLACEMENT_CONFLICT"
    vocabulary = "adcp"


class AmbiguousBiddingPolicyError(FaultError):
    """The request sets bidding in two ways at once (correctable). Keep either the current bidding fields or the older ones, not both."""

    code = "AMBIGUOUS_BIDDING_POLICY"
    vocabulary = "adcp"


class ConflictingSelectorsError(FaultError):
    """The request names formats in ways that contradict each other (correctable). Name the format in one way only, or make all ways agree."""

    code = "CONFLICTING_SELECTORS"
    vocabulary = "adcp"


class RequoteRequiredError(FaultError):
    """The change goes beyond what was agreed (correctable). Stay within the agreed terms, or negotiate a new proposal for the change."""

    code = "REQUOTE_REQUIRED"
    vocabulary = "adcp"


class VersionUnsupportedError(FaultError):
    """The seller does not speak this version of the protocol (correctable). Use a version the seller supports."""

    code = "VERSION_UNSUPPORTED"
    vocabulary = "adcp"


class CampaignSuspendedError(FaultError):
    """The campaign is on hold until somebody has reviewed it (transient). Wait for the review; ask the plan's operator if it takes long."""

    code = "CAMPAIGN_SUSPENDED"
    vocabulary = "adcp"


class GovernanceUnavailableError(FaultError):
    """The governance agent cannot be reached (transient). Try again later, waiting longer each time; then ask whoever runs that agent."""

    code = "GOVERNANCE_UNAVAILABLE"
    vocabulary = "adcp"


class GovernanceAgentNotAcceptedError(FaultError):
    """The seller does not accept this governance agent (correctable). Choose a governance agent the seller accepts, then send it as a new request."""

    code = "GOVERNANCE_AGENT_NOT_ACCEPTED"
    vocabulary = "adcp"


class PermissionDeniedError(everyday.PermissionDeniedError):
    """This caller may not do that (correctable). Obtain the missing permission or approval, then send the request again."""

    code = "PERMISSION_DENIED"
    vocabulary = "adcp"


class ScopeInsufficientError(FaultError):
    """This task is not among those the caller may use (correctable). Have somebody widen the caller's scope; a repeat will not help."""

    code = "SCOPE_INSUFFICIENT"
    vocabulary = "adcp"


class ReadOnlyScopeError(FaultError):
    """The caller may read but not change anything (correctable). Do it without changing anything, or have write access granted."""

    code = "READ_ONLY_SCOPE"
    vocabulary = "adcp"


class FieldNotPermittedError(FaultError):
    """The caller may not set one of the fields (correctable). Leave the named field out, then send the request again."""

    code = "FIELD_NOT_PERMITTED"
    vocabulary = "adcp"


class ProvenanceRequiredError(FaultError):
    """The creative does not say where it comes from (correctable). Add provenance to the creative, then submit it again."""

    code = "PROVENANCE_REQUIRED"
    vocabulary = "adcp"


class ProvenanceDigitalSourceTypeMissingError(FaultError):
    """The creative's provenance lacks its kind of source (correctable). State the digital source type in the provenance, then submit it again."""

    code = "PROVENANCE_DIGITAL_SOURCE_TYPE_MISSING"
    vocabulary = "adcp"


class ProvenanceSyntheticDepictionMissingError(FaultError):
    """The creative's provenance does not say whether it depicts anything synthetic (correctable). Have the creative assessed, state the result either way, then submit it again."""

    code = "PROVENANCE_SYNTHETIC_DEPICTION_MISSING"
    vocabulary = "adcp"


class ProvenanceDisclosureMissingError(FaultError):
    """The creative's provenance lacks its disclosure (correctable). State whether a disclosure is required and where, then submit it again."""

    code = "PROVENANCE_DISCLOSURE_MISSING"
    vocabulary = "adcp"


class ProvenanceEmbeddedMissingError(FaultError):
    """The creative carries no provenance inside its file (correctable). Embed provenance with a supported provider, then submit it again."""

    code = "PROVENANCE_EMBEDDED_MISSING"
    vocabulary = "adcp"


class ProvenanceVerifierNotAcceptedError(FaultError):
    """The seller does not accept the named verifier (correctable). Name a verifier the seller accepts, or leave it out where it is not needed."""

    code = "PROVENANCE_VERIFIER_NOT_ACCEPTED"
    vocabulary = "adcp"


class ProvenanceClaimContradictedError(FaultError):
    """A check contradicts what the creative says about its origin (correctable). Correct the claim or replace the creative; unchanged it will fail again."""

    code = "PROVENANCE_CLAIM_CONTRADICTED"
    vocabulary = "adcp"


class EvaluatorAgentNotAcceptedError(FaultError):
    """The seller does not accept the named evaluator (correctable). Name an evaluator the seller accepts, or leave it out."""

    code = "EVALUATOR_AGENT_NOT_ACCEPTED"
    vocabulary = "adcp"


class BillingNotSupportedError(FaultError):
    """The seller does not bill this way (correctable). Choose a way of billing the seller supports, or leave it to the seller."""

    code = "BILLING_NOT_SUPPORTED"
    vocabulary = "adcp"


class BillingNotPermittedForAgentError(FaultError):
    """This agent may not be billed this way (correctable). Use the suggested way of billing; without one, have it arranged with the seller."""

    code = "BILLING_NOT_PERMITTED_FOR_AGENT"
    vocabulary = "adcp"


class BillingOutOfBandError(FaultError):
    """This account is billed outside the protocol (terminal). Stop reporting usage here; settle costs through the account's own channel."""

    code = "BILLING_OUT_OF_BAND"
    vocabulary = "adcp"


class PaymentTermsNotSupportedError(FaultError):
    """The seller does not accept these payment terms (correctable). Leave the terms to the seller, or propose others."""

    code = "PAYMENT_TERMS_NOT_SUPPORTED"
    vocabulary = "adcp"


class BrandRequiredError(FaultError):
    """A billable request has to name the brand (correctable). Name the brand, then send the request again."""

    code = "BRAND_REQUIRED"
    vocabulary = "adcp"


class AgentSuspendedError(FaultError):
    """The seller has suspended this agent (terminal). Stop, and have somebody talk to the seller."""

    code = "AGENT_SUSPENDED"
    vocabulary = "adcp"


class AgentBlockedError(FaultError):
    """The seller has blocked this agent for good (terminal). Stop, and do without this seller unless people agree otherwise."""

    code = "AGENT_BLOCKED"
    vocabulary = "adcp"


class CredentialInArgsError(FaultError):
    """The arguments contained credentials or keys (terminal). Never repeat it; replace the exposed secret, and send secrets only with the transport."""

    code = "CREDENTIAL_IN_ARGS"
    vocabulary = "adcp"


class ActionNotAllowedError(FaultError):
    """This action is not available on the media buy at present (correctable). Choose one of the available actions, or wait until this one is available."""

    code = "ACTION_NOT_ALLOWED"
    vocabulary = "adcp"


class PrivateFieldInPublicPlacementError(FaultError):
    """A public placement shows fields the seller meant to keep private (correctable). Do not use or repeat those fields; have the seller remove them."""

    code = "PRIVATE_FIELD_IN_PUBLIC_PLACEMENT"
    vocabulary = "adcp"


class FormatProjectionFailedError(FaultError):
    """An older format could not be expressed in the current form (correctable). Use the format under its older name; have the seller declare the current form."""

    code = "FORMAT_PROJECTION_FAILED"
    vocabulary = "adcp"


class FormatDeclarationDivergentError(FaultError):
    """The old and the new description of a format disagree (correctable). Go by the new description, and tell the seller."""

    code = "FORMAT_DECLARATION_DIVERGENT"
    vocabulary = "adcp"


class FormatShapePromotedError(FaultError):
    """A custom format now has a standard form (correctable). Move to the standard form while both are still accepted."""

    code = "FORMAT_SHAPE_PROMOTED"
    vocabulary = "adcp"


class FormatDeclarationV1AmbiguousError(FaultError):
    """A format cannot be matched to one single older format (correctable). Use its current form; have the seller name the older one."""

    code = "FORMAT_DECLARATION_V1_AMBIGUOUS"
    vocabulary = "adcp"


class FormatOptionUnresolvedError(FaultError):
    """A placement refers to a format its publisher does not declare (correctable). Do without that format there; have the publisher correct the list."""

    code = "FORMAT_OPTION_UNRESOLVED"
    vocabulary = "adcp"


class FormatNotSupportedError(FaultError):
    """The creative agent cannot do this for the requested format (correctable). Read the agent's supported formats again, and choose one that fits the operation."""

    code = "FORMAT_NOT_SUPPORTED"
    vocabulary = "adcp"


class FormatDeclarationV1LossyMultiSizeError(FaultError):
    """Some sizes of a format are missing from its older description (correctable). Use the current form for all sizes; have the seller complete the older one."""

    code = "FORMAT_DECLARATION_V1_LOSSY_MULTI_SIZE"
    vocabulary = "adcp"


class PixelTrackerLossyDowngradeError(FaultError):
    """A tracker was simplified for an older seller and lost some meaning (correctable). Check that the simplified tracker still counts what you need."""

    code = "PIXEL_TRACKER_LOSSY_DOWNGRADE"
    vocabulary = "adcp"


class PixelTrackerUpgradeInferredError(FaultError):
    """What a tracker counts was guessed from its older form (correctable). State event and method explicitly, or confirm the guess."""

    code = "PIXEL_TRACKER_UPGRADE_INFERRED"
    vocabulary = "adcp"


class StaleResponseError(FaultError):
    """The answer is older than it should be; its source could not be reached (transient). Use it with care, or ask again later for fresh data."""

    code = "STALE_RESPONSE"
    vocabulary = "adcp"


class FeedFetchFailedError(FaultError):
    """The catalog feed could not be fetched (correctable). Check that the feed can be reached and is of the declared kind."""

    code = "FEED_FETCH_FAILED"
    vocabulary = "adcp"


class SourceAccessFailedError(FaultError):
    """The external audience source could not be read (correctable). Correct the reference or grant the seller access; if both are right, try again later."""

    code = "SOURCE_ACCESS_FAILED"
    vocabulary = "adcp"


class InvalidFeedFormatError(FaultError):
    """The feed is not in the declared format (correctable). Declare the format the feed really has, or correct the feed."""

    code = "INVALID_FEED_FORMAT"
    vocabulary = "adcp"


class ItemValidationFailedError(FaultError):
    """Some catalog items are not valid (correctable). Correct the items the details name, then send those again."""

    code = "ITEM_VALIDATION_FAILED"
    vocabulary = "adcp"


class CatalogLimitExceededError(FaultError):
    """The account can hold no more catalogs (correctable). Remove catalogs that are not needed, or ask the seller for more."""

    code = "CATALOG_LIMIT_EXCEEDED"
    vocabulary = "adcp"


class InvalidPricingOptionError(FaultError):
    """The pricing option is not offered here (correctable). Take a pricing option from the product's current list."""

    code = "INVALID_PRICING_OPTION"
    vocabulary = "adcp"


class InvalidUsageDataError(FaultError):
    """A usage record is incomplete or wrong (correctable). Correct the named record, then report it again."""

    code = "INVALID_USAGE_DATA"
    vocabulary = "adcp"


class SignedResponseEnvelopeExpiredError(FaultError):
    """The signature of the answer has run out (transient). Make the same request again to get a newly signed answer."""

    code = "SIGNED_RESPONSE_ENVELOPE_EXPIRED"
    vocabulary = "adcp"


class SignedResponseRequestHashMismatchError(FaultError):
    """The signed answer belongs to another request (correctable). Do not trust it; make the intended request again."""

    code = "SIGNED_RESPONSE_REQUEST_HASH_MISMATCH"
    vocabulary = "adcp"


class SignedResponseTenantMismatchError(FaultError):
    """The signed answer is for another brand (correctable). Do not trust it; check which brand and agent were asked, then ask again."""

    code = "SIGNED_RESPONSE_TENANT_MISMATCH"
    vocabulary = "adcp"


class VastParseFailedError(FaultError):
    """The VAST document cannot be used as it is (correctable). Repair the document as the details say, then submit it again."""

    code = "VAST_PARSE_FAILED"
    vocabulary = "adcp"


class VastVersionMismatchError(FaultError):
    """The VAST version is not accepted here, or the document breaks its rules (correctable). Supply an accepted version, or correct the document."""

    code = "VAST_VERSION_MISMATCH"
    vocabulary = "adcp"


class VastWrapperDepthExceededError(FaultError):
    """The chain of VAST wrappers does not lead to an ad (correctable). Shorten the chain, and repair the step that fails."""

    code = "VAST_WRAPPER_DEPTH_EXCEEDED"
    vocabulary = "adcp"


class CreativeRepresentationUnresolvedError(FaultError):
    """No variant of the creative fits the chosen format (correctable). Choose a format that fits, or add a variant for this one."""

    code = "CREATIVE_REPRESENTATION_UNRESOLVED"
    vocabulary = "adcp"


class MacroResolutionFailedError(FaultError):
    """A placeholder in the creative cannot be filled in (correctable). Correct the declared placeholders, or choose a product that can fill them."""

    code = "MACRO_RESOLUTION_FAILED"
    vocabulary = "adcp"
