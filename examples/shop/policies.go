package main

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

// policies has the policies of all services, from one file that is loaded again when it changes. The budgets and
// observers are code, and survive that.
type policies struct {
	catalog                retryconf.Catalog
	orders, prices, export *retryconf.Ref // of shop
	stock, ordersDB        *retryconf.Ref // of orders
	stockDB                *retryconf.Ref // of stock
}

// The budgets of the clients. The download is a client alone. Its successes fund little, so time funds it too.
var (
	budget       = retry.BudgetConfig{Ratio: 0.1, Burst: 10}
	exportBudget = retry.BudgetConfig{Ratio: 0.1, Burst: 10, Trickle: time.Second}
)

// define returns the budgets by the names of their policies.
func (p *policies) define(observe func(context.Context, retry.Event)) map[string]*retry.Budget {
	budgets := map[string]*retry.Budget{}
	client := func(name string, b retry.BudgetConfig) *retryconf.Ref {
		budgets[name] = retry.NewBudget(b)
		return p.catalog.Define(name, retry.Policy{Budget: budgets[name], Observe: observe})
	}
	p.orders, p.prices, p.export = client("shop.orders", budget), client("shop.prices", budget), client("shop.export", exportBudget)
	p.stock, p.ordersDB, p.stockDB = client("orders.stock", budget), client("orders.db", budget), client("stock.db", budget)
	// A job that a budget refuses is a dead letter, so mail has no budget. Its TTL and its waits bound it.
	p.catalog.Define("orders.mail", retry.Policy{Observe: observe})
	return budgets
}

// follow loads the file whenever it has changed. A file that is not valid is ignored.
func (p *policies) follow(path string, j *journal) {
	var last time.Time
	for range time.Tick(200 * time.Millisecond) {
		info, err := os.Stat(path)
		if err != nil || info.ModTime().Equal(last) {
			continue
		}
		last = info.ModTime()
		j.add(line{What: "catalog"}, p.catalog.LoadFile(path))
	}
}

// of returns a Transport's PolicyFor.
func of(ref *retryconf.Ref) func(*http.Request) retry.Policy {
	return func(*http.Request) retry.Policy { return ref.Policy() }
}
