package silent

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseRanks reads the ranks that are stopped, as in 1,2, or a share of all members, as in
// 10%, which are spread over all ranks.
func (c *Config) ParseRanks(text string) error {
	if share, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.Atoi(share)
		if err != nil || percent < 1 || percent > 90 {
			return fmt.Errorf("--silent %s: choose a share between 1%% and 90%%", text)
		}
		count := max(c.Members*percent/100, 1)
		for i := range count {
			c.Silent = append(c.Silent, 1+i*(c.Members-1)/count)
		}
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		rank, err := strconv.Atoi(part)
		if err != nil {
			return fmt.Errorf("--silent %s: %q is not a rank: write ranks with commas between them, as in 1,2, or a share of all members, as in 10%%", text, part)
		}
		c.Silent = append(c.Silent, rank)
	}
	return nil
}

// ParseRate reads how many messages are sent in a second: a number, or full.
func (c *Config) ParseRate(text string) error {
	c.Interval = 0
	if text == "full" {
		return nil
	}
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || rate < 1 || rate > 10_000 {
		return fmt.Errorf("--rate %s: choose a number of messages a second between 1 and 10000, or full", text)
	}
	c.Interval = time.Duration(float64(time.Second) / rate)
	return nil
}
