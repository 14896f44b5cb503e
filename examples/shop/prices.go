package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/retrygo/retry/retryhttp"
)

// priceService is one of two replicas:
//
//	GET /price?item=7    the price in cents
//	GET /export          all prices, as a large file
func (s *service) priceService(context.Context) (stop func(), err error) {
	file, tag := export(setting("RELEASE")), `"`+setting("RELEASE")+`"`
	mux := http.NewServeMux()
	mux.HandleFunc("GET /price", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, 100+crc32.ChecksumIEEE([]byte(r.FormValue("item")))%900)
	})
	mux.HandleFunc("GET /export", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		http.ServeContent(&slowly{w}, r, "export.bin", time.Time{}, bytes.NewReader(file))
	})
	return serve(setting("LISTEN"), retryhttp.Handler(mux, retryhttp.HandlerOptions{Trust: trusted}))
}

// slowly writes about a megabyte a second, so that faults find the middle of a body.
type slowly struct{ http.ResponseWriter }

func (w *slowly) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		var m int
		m, err = w.ResponseWriter.Write(b[:min(len(b), 32<<10)])
		n, b = n+m, b[m:]
		time.Sleep(30 * time.Millisecond)
	}
	return n, err
}

// export returns the file of a release, which is random bytes, always the same.
func export(release string) []byte {
	seed := sha256.Sum256([]byte(release))
	file := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8(seed).Read(file)
	return file
}
