// A producer and a consumer of franz-go under each of some cipher suites, as TlsSuites.java.
//
//	suites 127.0.0.1:9093 ca.pem SUITE...
//
// Go lets nobody choose among the suites of TLS 1.3: "TLS 1.3" stands for them.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func run(address, topic string, config *tls.Config) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.DialTLSConfig(config), kgo.AllowAutoTopicCreation(),
		kgo.DefaultProduceTopic(topic), kgo.ConsumeTopics(topic), kgo.ClientID(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for _, size := range []int{10, 20_000, 100_000} {
		if err := client.ProduceSync(ctx, &kgo.Record{Value: make([]byte, size)}).FirstErr(); err != nil {
			return 0, err
		}
	}
	came := 0
	for came < 3 && ctx.Err() == nil {
		came += client.PollFetches(ctx).NumRecords()
	}
	return came, nil
}

func main() {
	pem, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	ids := map[string]uint16{}
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		ids[suite.Name] = suite.ID
	}
	for number, name := range os.Args[3:] {
		config := &tls.Config{RootCAs: roots}
		if id, there := ids[name]; there {
			config.CipherSuites, config.MaxVersion = []uint16{id}, tls.VersionTLS12
		} else if name != "TLS 1.3" {
			fmt.Println(name, "is none of Go's")
			continue
		}
		came, err := run(os.Args[1], fmt.Sprintf("go-%d", number), config)
		if err != nil {
			fmt.Println(name, err)
		} else {
			fmt.Println(name, came)
		}
	}
}
