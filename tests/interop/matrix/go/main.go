// What clients in Go can do, each feature tried once: a line "ok NAME" or "no NAME WHY".
//
//	go run . franz-go|sarama ADDRESS
package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

const patience = 40 * time.Second // for a feature

// A feature's function takes the name of its topic and group.
type feature struct {
	name string
	try  func(topic string) error
}

var values = []string{"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9"}

func check(right bool, what any) error {
	if right {
		return nil
	}
	return fmt.Errorf("%v", what)
}

// first is the first of the errors that is one.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func main() {
	library, address := os.Args[1], os.Args[2]
	features := map[string]func(string) []feature{"franz-go": franzFeatures, "sarama": saramaFeatures}[library](address)
	for _, each := range features {
		done := make(chan error, 1)
		go func() {
			defer func() {
				if panicked := recover(); panicked != nil {
					done <- fmt.Errorf("%v", panicked)
				}
			}()
			done <- each.try(library + "-" + each.name)
		}()
		err := error(nil)
		select {
		case err = <-done:
		case <-time.After(patience):
			err = fmt.Errorf("not done in %s", patience)
		}
		if err == nil {
			fmt.Println("ok", each.name)
		} else {
			fmt.Println("no", each.name, strings.ReplaceAll(err.Error(), "\n", " "))
		}
	}
}
