package main

// The memory of a server beside its buffers: a live heap, and garbage from each request.

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

type node struct {
	left, right *node
	_           [48]byte
}

// makeLive is a tree of small objects of this many bytes in all.
func makeLive(bytes int) *node {
	if bytes < 64 {
		return nil
	}
	return &node{left: makeLive((bytes - 64) / 2), right: makeLive((bytes - 64) / 2)}
}

// describe does the work of a server for a request beside forwarding it: it copies the header, collects attributes for
// traces and counters, and writes a line of the access log as JSON.
func describe(log io.Writer, r *http.Request, began time.Time) error {
	header := r.Header.Clone()
	attributes := map[string]any{"method": r.Method, "path": r.URL.Path, "began": began.Format(time.RFC3339Nano)}
	for k := range 48 {
		attributes[fmt.Sprintf("label.%02d", k)] = fmt.Sprintf("%s %s %d", r.RemoteAddr, r.URL.Path, k)
	}
	for name, values := range header {
		attributes["header."+name] = values
	}
	line, err := json.Marshal(attributes)
	if err != nil {
		return err
	}
	_, err = log.Write(line)
	return err
}
