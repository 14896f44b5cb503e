package main

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/elastic/elastic-transport-go/v8/elastictransport"
	"github.com/go-resty/resty/v2"
	"github.com/stretchr/testify/require"
)

// The traps of docs/everywhere.md that can be shown in virtual time.

// unavailable is a transport that answers 503 and counts.
type unavailable int

func (n *unavailable) RoundTrip(r *http.Request) (*http.Response, error) {
	*n++
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Request: r}, nil
}

// perform sends a POST by the client.
func perform(t *testing.T, client *elastictransport.Client) *http.Response {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("{}"))
	require.NoError(t, err)
	resp, err := client.Perform(req)
	require.NoError(t, err)
	return resp
}

var elsewhere = &url.URL{Scheme: "http", Host: "server.test"}

func TestElasticMinusOne(t *testing.T) {
	var sent unavailable
	//lint:ignore SA1019 go-elasticsearch's configuration has the field, too
	client, err := elastictransport.New(elastictransport.Config{URLs: []*url.URL{elsewhere}, Transport: &sent, MaxRetries: -1})
	require.NoError(t, err)
	require.Nil(t, perform(t, client), "neither a response nor an error")
	require.Zero(t, int(sent))

	_, err = elastictransport.NewClient(elastictransport.WithMaxRetries(-1))
	require.Error(t, err)
}

func TestElasticWaitsAfterTheLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent unavailable
		var asked []int
		client, err := elastictransport.NewClient(elastictransport.WithURLs(elsewhere), elastictransport.WithTransport(&sent),
			elastictransport.WithMaxRetries(2), elastictransport.WithRetryBackoff(func(attempt int) time.Duration {
				asked = append(asked, attempt)
				return time.Second
			}))
		require.NoError(t, err)
		began := time.Now()
		require.Equal(t, http.StatusServiceUnavailable, perform(t, client).StatusCode)
		require.Equal(t, 3, int(sent))
		require.Equal(t, []int{1, 2, 3}, asked, "a wait for each attempt, the last one included")
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestRestyClipsTheWait(t *testing.T) {
	for says, waited := range map[time.Duration]time.Duration{
		5 * time.Second: 2 * time.Second, 5 * time.Millisecond: 100 * time.Millisecond, time.Second: time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			var sent unavailable
			began := time.Now()
			client := resty.New().SetTransport(&sent).SetRetryCount(1).
				SetRetryAfter(func(*resty.Client, *resty.Response) (time.Duration, error) { return says, nil }).
				AddRetryCondition(func(r *resty.Response, _ error) bool { return r.StatusCode() == http.StatusServiceUnavailable })
			_, err := client.R().Get("http://server.test/")
			require.NoError(t, err)
			require.Equal(t, 2, int(sent))
			require.Equal(t, waited, time.Since(began))
		})
	}
}

func TestRestyTakesA503ForASuccess(t *testing.T) {
	var sent unavailable
	resp, err := resty.New().SetTransport(&sent).SetRetryCount(3).R().Get("http://server.test/")
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode())
	require.Equal(t, 1, int(sent))
}

func TestWatermillSkipsStepsForItsHooks(t *testing.T) {
	s := time.Second
	for name, row := range map[string]struct {
		hook, should bool
		waits, told  []time.Duration
	}{
		"no hook":     {waits: []time.Duration{1 * s, 2 * s, 4 * s}},
		"OnRetryHook": {hook: true, waits: []time.Duration{1 * s, 4 * s, 16 * s}, told: []time.Duration{2 * s, 8 * s, 32 * s}},
		"ShouldRetry": {should: true, waits: []time.Duration{2 * s, 8 * s, 32 * s}, told: []time.Duration{1 * s, 4 * s, 16 * s, 64 * s}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var waits, told []time.Duration
				last := time.Now()
				r := middleware.Retry{MaxRetries: 3, InitialInterval: s, MaxInterval: time.Hour, Multiplier: 2}
				if row.hook {
					r.OnRetryHook = func(_ int, delay time.Duration) { told = append(told, delay) }
				}
				if row.should {
					r.ShouldRetry = func(p middleware.RetryParams) bool { told = append(told, p.Delay); return true }
				}
				_, err := r.Middleware(func(*message.Message) ([]*message.Message, error) {
					waits, last = append(waits, time.Since(last)), time.Now()
					return nil, errors.New("busy")
				})(message.NewMessage("1", nil))
				require.EqualError(t, err, "busy")
				require.Equal(t, row.waits, waits[1:])
				require.Equal(t, row.told, told, "which is not what was waited")
			})
		})
	}
}

func TestTheDocumentNamesVersionsThatRun(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	document := read("../../docs/everywhere.md")
	module := read("go.mod")
	rows := strings.Split(strings.Split(document, "| library | hook |")[1], "\n\n")[0]
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-zA-Z][^|]*) \|.*$`).FindAllStringSubmatch(rows, -1) {
		require.Regexp(t, ` (Go )?[0-9]+\.[0-9]+|^(nats.go, reconnecting|go-redis, commands)$`, row[1], "the version")
	}
	for name, row := range map[string]string{
		"twmb/franz-go": "franz-go", "nats-io/nats.go": "nats.go", "hibiken/asynq": "asynq",
		"elastic-transport-go/v8": "elastic-transport", "go-resty/resty/v2": "resty", "redis/rueidis": "rueidis",
		"sdk/azcore": "azcore", "go-kratos/kratos/v2": "kratos", "ThreeDotsLabs/watermill": "watermill",
	} {
		version := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(row) + ` ([0-9.]+)`).FindStringSubmatch(document)
		require.Len(t, version, 2, row)
		require.Contains(t, module, name+" v"+version[1], "the version that runs")
	}
}
