package web_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/web"
)

func BenchmarkEvaluate(b *testing.B) {
	for name, change := range map[string]map[string]string{
		"opening":   {},
		"busy":      {"rate": "1000", "capacity": "2000", "clients": "10000"},
		"unlimited": {"max_attempts": "unlimited", "ttl": "1h"},
		"storm":     web.Presets()["See a storm"],
		"cautious":  web.Presets()["Cautious"],
	} {
		b.Run(name, func(b *testing.B) {
			handler := web.NewHandler(3 * time.Second)
			state := web.Defaults()
			maps.Copy(state, change)
			body, err := json.Marshal(state)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/api/evaluate", bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}
