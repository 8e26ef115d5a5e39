package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	nodes, _ := strconv.Atoi(os.Args[1])
	options := []kfake.Opt{kfake.NumBrokers(nodes), kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(4)}
	if first, _ := strconv.Atoi(os.Args[2]); first > 0 {
		var ports []int
		for node := range nodes {
			ports = append(ports, first+node)
		}
		options = append(options, kfake.Ports(ports...))
	}
	cluster, err := kfake.NewCluster(options...)
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
