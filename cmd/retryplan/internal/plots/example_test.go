package plots_test

import (
	"fmt"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/retryplan"
)

func ExampleSchedule() {
	p, err := retryplan.New(retry.Aggressive(), retryplan.Model{})
	if err != nil {
		fmt.Println(err)
		return
	}
	picture, err := plots.Schedule(plots.Plan{Name: "aggressive", Plan: p})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(picture.Text(60))
	// Output:
	// Wait before each attempt: aggressive
	//  2 █                                                     10s
	//  3                           █                           1m
	//  4                                                    █  5m
	//    10s                   log scale                   5m
}
