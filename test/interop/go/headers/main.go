// Writes random header blocks of one connection with Go's HPACK encoder: per line the block in
// hexadecimal digits, and the headers it holds as JSON, names and values in hexadecimal digits too.
//
// usage: headers SEED BLOCKS
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"

	"golang.org/x/net/http2/hpack"
)

func main() {
	seed, _ := strconv.ParseInt(os.Args[1], 10, 64)
	blocks, _ := strconv.Atoi(os.Args[2])
	random := rand.New(rand.NewSource(seed))
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for i := 0; i < blocks; i++ {
		block.Reset()
		if random.Intn(5) == 0 {
			encoder.SetMaxDynamicTableSize(uint32(random.Intn(4097)))
		}
		list := [][2]string{}
		for j := random.Intn(8); j > 0; j-- {
			field := hpack.HeaderField{Name: fmt.Sprintf("name-%d", random.Intn(25)), Value: value(random), Sensitive: random.Intn(6) == 0}
			if random.Intn(6) == 0 {
				field.Name = "grpc-status"
			}
			if err := encoder.WriteField(field); err != nil {
				panic(err)
			}
			list = append(list, [2]string{hex.EncodeToString([]byte(field.Name)), hex.EncodeToString([]byte(field.Value))})
		}
		text, _ := json.Marshal(list)
		fmt.Fprintf(out, "%s %s\n", hex.EncodeToString(block.Bytes()), text)
	}
}

func value(random *rand.Rand) string {
	if random.Intn(2) == 0 {
		return fmt.Sprintf("value %d", random.Intn(10))
	}
	bytes := make([]byte, random.Intn(300))
	most := []int{32, 128, 256}[random.Intn(3)]
	for i := range bytes {
		bytes[i] = byte(random.Intn(most))
	}
	return string(bytes)
}
