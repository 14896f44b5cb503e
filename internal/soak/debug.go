package main

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
)

// debugHandler answers what the process holds: "goroutines files". With ?stacks it lists the goroutines.
func (s *service) debugHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("stacks") {
			_ = pprof.Lookup("goroutine").WriteTo(w, 1)
			return
		}
		for _, closeIdle := range s.idle {
			closeIdle()
		}
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, runtime.NumGoroutine(), len(files))
	})
}
