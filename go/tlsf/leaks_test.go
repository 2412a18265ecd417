package tlsf_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/freestone-alloc/freestone/go/tlsf"
)

func TestLeaksNameWhoAllocated(t *testing.T) {
	h := newHeap(t, 4096, tlsf.WithCallSites(3))
	freed := mustAlloc(t, h, 10)
	leakOnPurpose(t, h)
	if err := h.Free(freed); err != nil {
		t.Fatal(err)
	}
	leaks := h.Leaks()
	if len(leaks) != 1 || leaks[0].Asked != 77 || leaks[0].Capacity < 77 || len(leaks[0].Stack) != 3 {
		t.Fatalf("%+v", leaks)
	}
	if text := leaks[0].String(); !strings.Contains(text, "leakOnPurpose") || !strings.Contains(text, "leaks_test.go:") {
		t.Errorf("leak: %s", text)
	}
	if err := h.Close(); !errors.Is(err, tlsf.ErrLeak) || !strings.Contains(err.Error(), "leakOnPurpose") {
		t.Errorf("close: %v", err)
	}
}

func leakOnPurpose(t *testing.T, h *tlsf.Heap) {
	if _, err := h.Alloc(77); err != nil {
		t.Fatal(err)
	}
}

func TestALongLeakReportIsCutShort(t *testing.T) {
	h := newHeap(t, 4096)
	for range 25 {
		mustAlloc(t, h, 10)
	}
	err := h.Close()
	if lines := strings.Count(err.Error(), "\n"); lines != 11 || !strings.HasSuffix(err.Error(), "and 15 more") {
		t.Fatal(err)
	}
}
