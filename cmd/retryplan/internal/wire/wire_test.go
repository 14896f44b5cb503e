package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// fill gives every field of a struct a value that is not zero, so that a field that is not copied shows.
func fill(v reflect.Value, seed int64) {
	switch v.Interface().(type) {
	case retryplan.Dist:
		v.Set(reflect.ValueOf(retryplan.Exponential(time.Duration(seed) * time.Millisecond)))
		return
	case retryconf.Spec:
		v.Set(reflect.ValueOf(retryconf.Spec{MaxAttempts: 3, Base: retryconf.Duration(time.Second)}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), seed*10+int64(i)+1)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), seed)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), seed*10+int64(i)+1)
		}
	case reflect.String:
		v.SetString("stall")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(seed)
	case reflect.Uint64:
		v.SetUint(uint64(seed))
	case reflect.Float64:
		v.SetFloat(float64(seed) / 8)
	default:
		panic(v.Kind())
	}
}

// numbers are the values in a struct, by the names of their fields, times and texts aside: wire and retryplan name
// alike.
func numbers(v reflect.Value, path string, into map[string]string) {
	switch x := v.Interface().(type) {
	case retryplan.Dist:
		into[path] = x.String()
		return
	case retryconf.Spec, retry.Policy, retry.Budget:
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			numbers(v.Field(i), path+"."+v.Type().Field(i).Name, into)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			numbers(v.Elem(), path, into)
		}
	case reflect.Slice:
		for i := range v.Len() {
			numbers(v.Index(i), fmt.Sprintf("%s[%d]", path, i), into)
		}
	case reflect.Func:
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		switch {
		case v.CanInt():
			into[path] = fmt.Sprint(v.Int())
		default:
			into[path] = fmt.Sprint(v)
		}
	}
}

func numbersOf(v any) map[string]string {
	into := map[string]string{}
	numbers(reflect.ValueOf(v), "", into)
	return into
}

// TestInputsKeepEveryField holds that each field of what goes in reaches retryplan, through JSON as well.
func TestInputsKeepEveryField(t *testing.T) {
	again := func(in any) any {
		data, err := json.Marshal(in)
		require.NoError(t, err)
		out := reflect.New(reflect.TypeOf(in))
		require.NoError(t, json.Unmarshal(data, out.Interface()), "%s", data)
		require.Equal(t, in, out.Elem().Interface())
		return out.Elem().Interface()
	}
	var scenario wire.Scenario
	fill(reflect.ValueOf(&scenario).Elem(), 1)
	scenario.Server.Shed = "hopeless"
	s, err := again(scenario).(wire.Scenario).Scenario()
	require.NoError(t, err)
	got := numbersOf(s)
	require.Equal(t, retryplan.ShedHopeless, s.Server.Shed)
	require.Equal(t, numbersOf(scenario), got)
	require.Equal(t, retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Second}}, s.Policy)

	var fleet wire.Fleet
	fill(reflect.ValueOf(&fleet).Elem(), 1)
	f, err := again(fleet).(wire.Fleet).Fleet()
	require.NoError(t, err)
	require.Equal(t, numbersOf(fleet), numbersOf(f))
	require.Equal(t, retryplan.Stall, f.Trigger.Kind)

	var required wire.Requirements
	fill(reflect.ValueOf(&required).Elem(), 1)
	r, err := again(required).(wire.Requirements).Requirements()
	require.NoError(t, err)
	require.Equal(t, numbersOf(required), numbersOf(r))

	var setting wire.Setting
	fill(reflect.ValueOf(&setting).Elem(), 1)
	require.Equal(t, numbersOf(setting), numbersOf(again(setting).(wire.Setting).Setting()))
	var model wire.Model
	fill(reflect.ValueOf(&model).Elem(), 1)
	require.Equal(t, numbersOf(model), numbersOf(again(model).(wire.Model).Model()))
}

func TestTheTextOfAPolicyDoesNotRepeatItsName(t *testing.T) {
	p, err := wire.NewPolicy(retry.Standard())
	require.NoError(t, err)
	require.Equal(t, "standard", p.Name)
	require.Equal(t, "4 attempts, list: 1m 30m 3h (3h31m in all)", p.Text)
}

func TestBadInputs(t *testing.T) {
	_, err := wire.Scenario{
		Policy: retryconf.Spec{Base: retryconf.Duration(time.Hour), Cap: retryconf.Duration(time.Second)}, Server: wire.Server{Shed: "all"},
		Triggers: []wire.Trigger{{Kind: "blip"}, {Kind: "stall"}, {}},
	}.Scenario()
	w := wire.NewError(err)
	require.Len(t, w.Fields, 4, "%+v", w)
	require.Equal(t, wire.Field{Field: "Server.Shed", Value: `"all"`, Rule: "is not one of nothing, expired, hopeless"}, w.Fields[1])
	require.NotContains(t, w.Error, "\n")

	_, err = wire.Fleet{}.Fleet()
	require.NoError(t, err, "a fleet needs no trigger")
	_, err = wire.Requirements{Fleet: &wire.Fleet{Trigger: wire.Trigger{Kind: "x"}}}.Requirements()
	require.Error(t, err)
	require.Empty(t, wire.NewError(errors.New("a\nb")).Fields)
}

func TestDuration(t *testing.T) {
	for _, row := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0s"}, {time.Hour, "1h"}, {90 * time.Minute, "1h30m"}, {10 * time.Minute, "10m"}, {time.Hour + time.Second, "1h0m1s"},
		{90 * time.Second, "1m30s"}, {250 * time.Millisecond, "250ms"}, {-time.Hour, "-1h"}, {20 * time.Hour, "20h"}, {10 * time.Second, "10s"},
	} {
		require.Equal(t, row.want, wire.Duration(row.d).String())
		var back wire.Duration
		require.NoError(t, back.UnmarshalText([]byte(row.want)))
		require.Equal(t, wire.Duration(row.d), back)
	}
	var d wire.Duration
	require.EqualError(t, d.UnmarshalText([]byte("soon")), `"soon" is no duration such as 30s, 1m30s or 250ms`)
}

func TestTriggers(t *testing.T) {
	for _, text := range []string{"stall 1m 10s", "outage 0s 10s", "slowdown 1m 10s 3", "capacity_cut 1m 10s 0", "surge 1m 1h30m 0.5", "failing 1s 1s 1"} {
		trigger, err := wire.ParseTrigger(text)
		require.NoError(t, err)
		require.Equal(t, text, trigger.String())
	}
	for _, text := range []string{"", "stall", "stall 1m", "stall 1m 1m 3", "surge 1m 10s", "surge 1m 10s x", "stall x 10s", "stall 1m x", "blip 1m 10s", "surge 1s 2s 3 4"} {
		_, err := wire.ParseTrigger(text)
		require.Error(t, err, text)
	}
	trigger, err := wire.ParseLasting("capacity-cut 10s 0.5")
	require.NoError(t, err)
	require.Equal(t, wire.Trigger{Kind: "capacity_cut", For: wire.Duration(10 * time.Second), Factor: .5}, trigger)
	require.Equal(t, "capacity_cut 10s 0.5", trigger.Lasting())

	// A simulation's trigger can be pasted.
	trigger, err = wire.ParseLasting("capacity-cut 60s 10s 0.5")
	require.NoError(t, err)
	require.Equal(t, "capacity_cut 10s 0.5", trigger.Lasting())
}

func TestNamesReadBack(t *testing.T) {
	for _, level := range []retryplan.Level{retryplan.Note, retryplan.Warning, retryplan.Severe} {
		got, err := wire.ParseLevel(level.String())
		require.NoError(t, err)
		require.Equal(t, level, got)
	}
	for kind := retryplan.Stall; kind <= retryplan.Failing; kind++ {
		got, err := wire.ParseKind(kind.String())
		require.NoError(t, err)
		require.Equal(t, kind, got)
	}
	for shed := retryplan.ShedNothing; shed <= retryplan.ShedHopeless; shed++ {
		got, err := wire.ParseShed(shed.String())
		require.NoError(t, err)
		require.Equal(t, shed, got)
	}
	require.Equal(t, "succeeded", wire.Reason(0))
	require.Equal(t, "ttl_elapsed", wire.Reason(retry.TTLElapsed))
}

// TestWhatIsNotFinite holds that a figure that JSON cannot express does not lose all the others.
func TestWhatIsNotFinite(t *testing.T) {
	data, err := json.Marshal(wire.NewCertificate(&retryplan.Certificate{Stability: retryplan.Safe, Attempts: math.Inf(1), Margin: math.NaN(), Recovery: -1, Tipping: time.Second}))
	require.NoError(t, err)
	require.JSONEq(t, `{"verdict":"safe","law":"","attempts":null,"hidden_capacity":0,"recovery_seconds":null,"tipping_seconds":1,"margin":null}`, string(data))
	data, err = json.Marshal(wire.NewFindings([]retryplan.Finding{{Code: "x", Level: retryplan.Note, Figures: map[string]float64{"a": math.Inf(-1), "b": 1.5}}}))
	require.NoError(t, err)
	require.JSONEq(t, `[{"code":"x","level":"note","text":"","change":"","figures":{"a":null,"b":1.5}}]`, string(data))
	data, err = json.Marshal(wire.NewFindings(nil))
	require.NoError(t, err)
	require.Equal(t, "[]", string(data))
}

// TestPlanSaysWhatThePlanIs compares the figures of a plan one by one.
func TestPlanSaysWhatThePlanIs(t *testing.T) {
	p, err := retryplan.New(retry.Policy{MaxAttempts: 3, TTL: 4 * time.Second, Backoff: retry.Backoff{Base: time.Second, Factor: 4}}, retryplan.Model{Failure: []float64{.5}})
	require.NoError(t, err)
	w := wire.NewPlan(p)
	require.Equal(t, []wire.Attempt{
		{Number: 1, Starts: 1, Succeeds: .5},
		{Number: 2, Wait: &wire.Wait{1, 1, 1, 1, 1, 1}, Starts: .5, Succeeds: .25, EarliestSeconds: 1, LatestSeconds: 1},
		{Number: 3, Wait: &wire.Wait{4, 4, 4, 4, 4, 4}, EarliestSeconds: w.Attempts[2].EarliestSeconds, LatestSeconds: w.Attempts[2].LatestSeconds, Never: "ttl_elapsed"},
	}, w.Attempts)
	require.Equal(t, map[string]float64{"succeeded": .75, "ttl_elapsed": .25}, nonzero(w.Endings))
	require.Equal(t, wire.Distribution{5, 5, 5, 5, 5, 5}, w.TotalWait)
	require.Equal(t, .75, w.Success)
	require.Equal(t, .75, w.InTime)
	require.Equal(t, 1.5, w.Load)
	require.Equal(t, 2, w.CanStart)
}

// TestWhatHasNoBound holds that the largest Duration, which stands for any beyond it, is no figure.
func TestWhatHasNoBound(t *testing.T) {
	p, err := retryplan.New(retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 200 * 365 * 24 * time.Hour, Cap: 200 * 365 * 24 * time.Hour}}, retryplan.Model{})
	require.NoError(t, err)
	data, err := json.Marshal(wire.NewPlan(p))
	require.NoError(t, err)
	require.Contains(t, string(data), `"worst_case_seconds":null`)
	require.Contains(t, string(data), `"latest_seconds":null`)
	require.Contains(t, string(data), `"max_seconds":null`)
	require.NotContains(t, string(data), "9223372036")
}

func nonzero(of map[string]float64) map[string]float64 {
	kept := map[string]float64{}
	for k, v := range of {
		if v != 0 {
			kept[k] = v
		}
	}
	return kept
}

// TestResultSaysWhatTheResultIs holds that every column of the series is the field of its name.
func TestResultSaysWhatTheResultIs(t *testing.T) {
	point := retryplan.Point{
		Start: 2 * time.Second, Offered: 1, Attempts: 2, Arrived: 3, Rejected: 4, TimedOut: 5, Goodput: 6, Failed: 7, Queue: 8, Busy: 9, Waiting: 10, Tokens: 11.5, Open: 12,
	}
	r := retryplan.Result{
		Simulated: 3 * time.Second, Events: 4, Step: 500 * time.Millisecond, Series: []retryplan.Point{{}, point}, Runs: 5, Attempts: 6, Rejected: 7, Wasted: 8,
		Endings: map[retry.Reason]int{0: 3, retry.AttemptsExhausted: 2}, Unfinished: 9, Amplification: 1.2, Failed: .4, Peak: 10, PeakAt: time.Second,
		Recovered: true, Recovery: 2 * time.Second, Judged: true,
	}
	w := wire.NewResult(&r)
	two, yes, no := 2.0, true, false
	require.Equal(t, wire.Result{
		SimulatedSeconds: 3, Events: 4, Runs: 5, Attempts: 6, Rejected: 7, Wasted: 8, Endings: map[string]int{"succeeded": 3, "attempts_exhausted": 2},
		Unfinished: 9, Amplification: 1.2, Failed: .4, Peak: 10, PeakAtSeconds: 1, Recovered: &yes, RecoverySeconds: &two,
		Series: wire.Series{
			StepSeconds: .5, StartSeconds: []float64{0, 2}, Offered: []int{0, 1}, Attempts: []int{0, 2}, Arrived: []int{0, 3}, Rejected: []int{0, 4}, TimedOut: []int{0, 5},
			Goodput: []int{0, 6}, Failed: []int{0, 7}, Queue: []int{0, 8}, Busy: []int{0, 9}, Waiting: []int{0, 10}, Tokens: []float64{0, 11.5}, Open: []int{0, 12},
		},
	}, w)
	r.Recovered = false
	require.Equal(t, &no, wire.NewResult(&r).Recovered)
	require.Nil(t, wire.NewResult(&r).RecoverySeconds)
	r.Judged = false
	require.Nil(t, wire.NewResult(&r).Recovered)
}

// FuzzOneLine holds that no text, of a policy's name or an error, reaches a terminal as anything but one line of text.
func FuzzOneLine(f *testing.F) {
	for _, seed := range []string{"", "plain", "a\nb\r\n\tc:\nd", "\x1b]0;title\a", "\u009b2J", "\x9b2J", "\u202eabc", "a\u2028b", "\x00", "日本"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := wire.OneLine(text)
		require.Equal(t, -1, strings.IndexFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", got)
		require.Equal(t, got, wire.OneLine(got))
	})
}

// FuzzParseTrigger holds that what is read is written and read again as the same.
func FuzzParseTrigger(f *testing.F) {
	for _, seed := range []string{"stall 60s 10s", "surge 1m 1h 3", "failing 0 1s 1e-3", "surge 1s 1s NaN", "slowdown -1s 1ns Inf", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trigger, err := wire.ParseTrigger(text)
		if err != nil || math.IsNaN(trigger.Factor) {
			return
		}
		again, err := wire.ParseTrigger(trigger.String())
		require.NoError(t, err)
		require.Equal(t, trigger, again)
	})
}
