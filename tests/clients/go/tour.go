// Go's own HTTP/2 transport in clear text with prior knowledge, as its clients of ksqlDB use it.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

var (
	url    = os.Args[1]
	client *http.Client
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func want(got, wanted any) {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		panic(fmt.Sprintf("got %v, wanted %v", got, wanted))
	}
}

func post(path string, body io.Reader) *http.Response {
	request, err := http.NewRequest("POST", url+path, body)
	check(err)
	request.Header.Set("Accept", "application/vnd.ksqlapi.delimited.v1")
	if path == "/ksql" {
		request.Header.Set("Accept", "application/vnd.ksql.v1+json")
	}
	response, err := client.Do(request)
	check(err)
	want(response.Proto, "HTTP/2.0")
	return response
}

func send(path string, body any) *http.Response {
	text, err := json.Marshal(body)
	check(err)
	return post(path, bytes.NewReader(text))
}

func run(statement string) {
	response := send("/ksql", map[string]any{"ksql": statement})
	text, err := io.ReadAll(response.Body)
	check(err)
	if response.StatusCode != 200 {
		panic(string(text))
	}
}

func ask(sql string) *http.Response {
	properties := map[string]string{"auto.offset.reset": "earliest"}
	return send("/query-stream", map[string]any{"sql": sql, "properties": properties})
}

func query(sql string) *bufio.Scanner {
	response := ask(sql)
	want(response.StatusCode, 200)
	return bufio.NewScanner(response.Body)
}

// Each row is acknowledged before the next one is sent: both directions are open.
func insert() {
	reader, writer := io.Pipe()
	go func() { fmt.Fprintln(writer, `{"target": "GO_RIDES"}`) }()
	var acks *bufio.Scanner
	for number, row := range []string{
		`{"BIKE": "b7", "DOCK": 1}`, `{"BIKE": "b9", "DOCK": 2}`, `{"BIKE": "b7", "DOCK": 3}`,
	} {
		if acks == nil {
			acks = bufio.NewScanner(post("/inserts-stream", reader).Body)
		}
		fmt.Fprintln(writer, row)
		acks.Scan()
		want(acks.Text(), fmt.Sprintf(`{"status":"ok","seq":%d}`, number))
	}
	writer.Close()
	want(acks.Scan(), false)
}

func pull() {
	for ; ; time.Sleep(200 * time.Millisecond) {
		response := ask("SELECT bike, rides FROM go_bikes WHERE bike = 'b7';")
		if response.StatusCode == 503 { // the table's query has not finished its first batch
			check(response.Body.Close())
			continue
		}
		want(response.StatusCode, 200)
		rows := bufio.NewScanner(response.Body)
		rows.Scan()
		if rows.Scan() && rows.Text() == `["b7",2]` {
			return
		}
	}
}

func push() {
	rows := query("SELECT * FROM go_rides EMIT CHANGES LIMIT 3;")
	rows.Scan()
	for _, row := range []string{`["b7",1]`, `["b9",2]`, `["b7",3]`} {
		rows.Scan()
		want(rows.Text(), row)
	}
	want(rows.Scan(), false)

	endless := query("SELECT * FROM go_rides EMIT CHANGES;")
	endless.Scan()
	var header struct{ QueryId string }
	check(json.Unmarshal(endless.Bytes(), &header))
	want(send("/close-query", header).StatusCode, 400) // the field is queryId, not QueryId
	want(send("/close-query", map[string]string{"queryId": header.QueryId}).StatusCode, 200)
	for endless.Scan() {
	}
	check(endless.Err())
}

func main() {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	client = &http.Client{Transport: &http.Transport{Protocols: &protocols}}
	run("CREATE STREAM go_rides (bike STRING KEY, dock INT) " +
		"WITH (KAFKA_TOPIC='go_rides', VALUE_FORMAT='JSON', PARTITIONS=1);")
	run("CREATE TABLE go_bikes AS SELECT bike, COUNT(*) AS rides FROM go_rides GROUP BY bike;")
	insert()
	push()
	pull()
	run("DROP TABLE go_bikes DELETE TOPIC;")
	run("DROP STREAM go_rides DELETE TOPIC;")
}
