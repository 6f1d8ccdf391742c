package ui

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Screenshots for people to look at: PLEACH_SCREENSHOTS names their directory.
func TestScreenshots(t *testing.T) {
	folder := testutil.Screenshots.Text()
	if folder == "" {
		t.Skip("PLEACH_SCREENSHOTS names no directory")
	}
	for _, size := range []int{5, 50, 500} {
		for theme, setting := range map[string]string{"dark": "0", "light": "1"} {
			t.Run(fmt.Sprint(size, theme), func(t *testing.T) {
				server := httptest.NewServer(newCanned(size).server(t))
				defer server.Close()
				name := filepath.Join(folder, fmt.Sprintf("ui-%d-%s.png", size, theme))
				chromium(t, server.URL+Path, "75", "--window-size=1440,960", "--blink-settings=preferredColorScheme="+setting,
					"--screenshot="+name)
				if err := shrink(name); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Screenshots of a fleet.
func TestScreenshotsOfZones(t *testing.T) {
	folder := testutil.Screenshots.Text()
	if folder == "" {
		t.Skip("PLEACH_SCREENSHOTS names no directory")
	}
	for _, zones := range []int{3, 60} {
		c := newCanned(20)
		c.zones = zones
		server := httptest.NewServer(c.server(t))
		defer server.Close()
		for _, window := range []string{"1440,1000", "420,1400"} {
			width, _, _ := strings.Cut(window, ",")
			name := filepath.Join(folder, fmt.Sprintf("zones-%d-%s.png", zones, width))
			chromium(t, server.URL+Path, "9", "--window-size="+window, "--blink-settings=preferredColorScheme=1",
				"--screenshot="+name)
		}
	}
}

// shrink writes a picture again with its 128 most frequent colors: a third of the bytes.
func shrink(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	picture, err := png.Decode(file)
	if err != nil {
		return err
	}
	counts, bounds := make(map[color.Color]int), picture.Bounds()
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			counts[picture.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return cmp.Compare(counts[b], counts[a]) })
	small := image.NewPaletted(bounds, colors[:min(128, len(colors))])
	draw.Draw(small, bounds, picture, bounds.Min, draw.Src)
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(out, small); err != nil {
		return err
	}
	return out.Close()
}
