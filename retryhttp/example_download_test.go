package retryhttp_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/retrygo/retry/retryhttp"
)

// download writes what is at url to a file and compares its SHA-256, in hex, with sum.
func download(client *http.Client, url, path, sum string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, hash), resp.Body)
	if got := hex.EncodeToString(hash.Sum(nil)); err == nil && got != sum {
		err = fmt.Errorf("%s has the SHA-256 %s", url, got)
	}
	return errors.Join(err, file.Close())
}

// A download goes on where its connection broke off.
func ExampleTransport_resume() {
	content := bytes.Repeat([]byte("0123456789"), 100_000)
	hash := sha256.Sum256(content)
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests < 4 {
			w = &cutWriter{w, 300_000} // then the connection ends
		}
		w.Header().Set("Etag", `"v1"`)
		http.ServeContent(w, r, "file", time.Time{}, bytes.NewReader(content))
	}))
	defer server.Close()
	path := filepath.Join(os.TempDir(), fmt.Sprintf("retryhttp-%x", hash[:4]))
	defer os.Remove(path)

	client := &http.Client{Transport: &retryhttp.Transport{Policy: quickly, Resume: true, StallTimeout: 30 * time.Second}}
	fmt.Println(download(client, server.URL, path, hex.EncodeToString(hash[:])))
	fmt.Println(requests, "requests")
	// Output:
	// <nil>
	// 4 requests
}
