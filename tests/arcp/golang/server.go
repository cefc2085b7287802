// A runtime of the Go SDK with the agents of cases.py. Prints its address.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	arcp "github.com/agentruntimecontrolprotocol/go-sdk"
	"github.com/agentruntimecontrolprotocol/go-sdk/middleware/nethttp"
	"github.com/agentruntimecontrolprotocol/go-sdk/server"
)

type agent = func(context.Context, json.RawMessage, *server.JobContext) (any, error)

var agents = map[string]agent{
	"echo": func(_ context.Context, input json.RawMessage, _ *server.JobContext) (any, error) {
		return input, nil
	},
	"nothing": func(context.Context, json.RawMessage, *server.JobContext) (any, error) {
		return nil, nil
	},
	"talk": func(_ context.Context, _ json.RawMessage, job *server.JobContext) (any, error) {
		job.Log(0, "one")
		job.Progress(1, 2, "steps", "")
		job.Status("half", "")
		job.Metric("size", 1.5, "s", nil)
		return "done", nil
	},
	"denied": func(context.Context, json.RawMessage, *server.JobContext) (any, error) {
		return nil, arcp.ErrPermissionDenied.WithMessage("no")
	},
	"broken": func(context.Context, json.RawMessage, *server.JobContext) (any, error) {
		return nil, errors.New("broken")
	},
	"slow": func(ctx context.Context, _ json.RawMessage, job *server.JobContext) (any, error) {
		job.Log(0, "started")
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Second):
			return nil, nil
		}
	},
	"ticks": func(_ context.Context, _ json.RawMessage, job *server.JobContext) (any, error) {
		for tick := range 10 {
			job.Log(0, fmt.Sprint("tick ", tick))
			time.Sleep(50 * time.Millisecond)
		}
		return 10, nil
	},
	"stream": func(_ context.Context, _ json.RawMessage, job *server.JobContext) (any, error) {
		writer, err := job.StreamResult("utf8")
		if err != nil {
			return nil, err
		}
		defer writer.Close()
		for range 5 {
			_, _ = writer.Write([]byte(strings.Repeat("x", 10) + "\n"))
		}
		return nil, nil
	},
	"rogue": func(_ context.Context, _ json.RawMessage, job *server.JobContext) (any, error) {
		call := job.ToolCall("fs.write", map[string]string{"path": "/etc/passwd"})
		if err := job.ValidateLeaseOp(arcp.CapFSWrite, "/etc/passwd"); err != nil {
			job.ToolError(call, err)
			return "denied", nil
		}
		return "allowed", nil
	},
}

func main() {
	runtime := server.New(server.Options{Name: "go"})
	for name, function := range agents {
		runtime.RegisterAgent(name, function)
	}
	mux := http.NewServeMux()
	mux.Handle("/arcp", nethttp.NewHandler(runtime, nethttp.Options{}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("ws://%s/arcp\n", listener.Addr())
	_ = http.Serve(listener, mux)
}
