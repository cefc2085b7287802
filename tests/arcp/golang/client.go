// Calls of a Go client, one line for each: what it returned, or "hangs" if the SDK's call did not return in time.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	arcp "github.com/agentruntimecontrolprotocol/go-sdk"
	"github.com/agentruntimecontrolprotocol/go-sdk/client"
	"github.com/agentruntimecontrolprotocol/go-sdk/transport"
)

const limit = 10 * time.Second

func report(name string, result any, err error) {
	var failure *arcp.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Println(name, "hangs")
	case errors.As(err, &failure):
		fmt.Println(name, failure.Code)
	case err != nil:
		fmt.Println(name, "failed", err)
	default:
		fmt.Println(name, result)
	}
}

func main() {
	background := context.Background()
	socket, err := transport.DialWebSocket(background, os.Args[1], transport.WebSocketOptions{})
	if err != nil {
		panic(err)
	}
	options := client.Options{Token: os.Getenv("AMENDS_TOKEN"), ClientName: os.Args[2], Features: os.Args[3:]}
	session, err := client.Connect(background, socket, options)
	if err != nil {
		report("connect", nil, err)
		return
	}
	run := func(name string, request client.SubmitRequest) {
		within, cancel := context.WithTimeout(background, limit)
		defer cancel()
		handle, err := session.Submit(within, request)
		if err != nil {
			report(name, nil, err)
			return
		}
		result, err := handle.Wait(within)
		if err != nil {
			report(name, nil, err)
			return
		}
		report(name, string(result.Output), nil)
	}
	run("result", client.SubmitRequest{Agent: "echo", Input: map[string]int{"n": 5}})
	run("unknown agent", client.SubmitRequest{Agent: "nobody"})
	run("unknown version", client.SubmitRequest{Agent: "echo@9"})
	run("invalid name", client.SubmitRequest{Agent: "Not A Name!"})
	run("failure", client.SubmitRequest{Agent: "denied"})
	run("own code", client.SubmitRequest{Agent: "own"})
	run("key", client.SubmitRequest{Agent: "echo", Input: 1, IdempotencyKey: "k"})
	run("conflicting key", client.SubmitRequest{Agent: "echo", Input: 2, IdempotencyKey: "k"})
	run("time limit", client.SubmitRequest{Agent: "slow", MaxRuntimeSec: 1})
	run("budget", client.SubmitRequest{Agent: "echo", Input: 1, LeaseRequest: arcp.Lease{"cost.budget": {"USD:5.00"}}})

	within, cancel := context.WithTimeout(background, limit)
	defer cancel()
	_, err = session.Subscribe(within, "job_unknown", client.SubscribeOptions{History: true})
	report("unknown job", "subscribed", err)
	page, err := session.ListJobs(within, client.ListJobsRequest{Limit: 2})
	if err == nil {
		report("page", len(page.Jobs), nil)
	} else {
		report("page", nil, err)
	}
	handle, err := session.Submit(within, client.SubmitRequest{Agent: "slow"})
	if err == nil {
		err = handle.Cancel(within, "stop")
	}
	if err == nil {
		_, err = handle.Wait(within)
	}
	report("cancelled", "ended", err)
	run("after all that", client.SubmitRequest{Agent: "echo", Input: 1})
	report("close", "closed", session.Close(within))
}
