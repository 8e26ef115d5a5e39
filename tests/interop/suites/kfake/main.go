package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	nodes, _ := strconv.Atoi(os.Args[1])
	cluster, err := kfake.NewCluster(kfake.NumBrokers(nodes), kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(4))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, address := range cluster.ListenAddrs() {
		fmt.Println(address)
	}
	fmt.Println("ready")
	select {}
}
