package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/transfer"
	"github.com/pleach-go/pleach/fleet"
)

// A file for a fleet crosses each long link once, in parts, to a delegate of each zone, which
// copies it to the members there as pleach cp does. Each part asks how far the zone is. If the
// delegate dies, the next one has nothing of the file yet and answers so, and the parts begin again;
// members continue from what they have.

// filesFleetName is the name of requests to a zone that carry parts of a file.
const filesFleetName = "agent/files"

const (
	partBytes    = 1 << 20                // of a file in one request
	partTimeout  = 15 * time.Second       // for its answer
	zonePatience = 30 * time.Second       // with a zone that does not answer
	zonePoll     = 200 * time.Millisecond // between questions while a zone copies
	maxUploads   = 16                     // files of other zones at a time
)

// zonePart is what comes before the bytes of a part.
type zonePart struct {
	ID     string     `json:"id"` // of the copy
	Upload api.Upload `json:"upload"`
	Size   int64      `json:"size"`   // of the whole file
	Offset int64      `json:"offset"` // of this part
}

// zoneReport is how far a zone is.
type zoneReport struct {
	Have     int64             `json:"have"` // bytes of the file, from its beginning
	Progress transfer.Progress `json:"progress"`
	Result   *transfer.Result  `json:"result,omitempty"` // at the end
	Error    string            `json:"error,omitempty"`  // why the copy has ended early
}

// copyToFleet copies a file to the members of all zones.
func (a *Agent) copyToFleet(ctx context.Context, s *transfer.Service, file transfer.File, u api.Upload,
	report func(transfer.Progress),
) (transfer.Result, error) {
	f, err := a.inFleet()
	if err != nil {
		return transfer.Result{}, err
	}
	own, id := a.config.Load().Zone, rand.Text()
	total := transfer.Result{Name: file.Name, Dir: u.Dir, Size: file.Size, Members: []transfer.MemberResult{}}
	var mu sync.Mutex
	progress := make(map[string]transfer.Progress)
	eachZone(a.zoneNames(f), func(zone string) {
		tell := func(p transfer.Progress) {
			mu.Lock()
			defer mu.Unlock()
			progress[zone] = p
			report(sumProgress(progress))
		}
		var r transfer.Result
		var err error
		if zone == own {
			r, err = s.Copy(ctx, file, u.Dir, tell)
		} else {
			r, err = copyToZone(ctx, f, zone, zonePart{ID: id, Upload: u, Size: file.Size}, file, tell)
		}
		mu.Lock()
		defer mu.Unlock()
		total.Add(zone, &r, err)
	})
	slices.SortFunc(total.Members, func(a, b transfer.MemberResult) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), a.Rank-b.Rank)
	})
	slices.SortFunc(total.FailedZones, func(a, b transfer.ZoneFailure) int { return cmp.Compare(a.Zone, b.Zone) })
	return total, ctx.Err()
}

func sumProgress(zones map[string]transfer.Progress) (sum transfer.Progress) {
	for _, p := range zones {
		sum.Sent, sum.Total = sum.Sent+p.Sent, sum.Total+p.Total
		sum.Settled, sum.Members = sum.Settled+p.Settled, sum.Members+p.Members
	}
	return sum
}

// copyToZone sends a file to a zone, and waits until its members have it or cannot have it.
func copyToZone(ctx context.Context, f *fleet.Fleet, zone string, part zonePart, file transfer.File,
	tell func(transfer.Progress),
) (transfer.Result, error) {
	buffer := make([]byte, min(partBytes, part.Size))
	for heard := time.Now(); ; {
		data := buffer[:min(int64(len(buffer)), part.Size-part.Offset)]
		if _, err := file.Content.ReadAt(data, part.Offset); err != nil {
			return transfer.Result{}, err
		}
		began := time.Now()
		r, err := sendPart(ctx, f, zone, &part, data)
		switch {
		case ctx.Err() != nil:
			return transfer.Result{}, ctx.Err()
		case err != nil && (!errors.Is(err, fleet.ErrUnreachable) && !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(heard) > zonePatience):
			return transfer.Result{}, err
		case err != nil:
			pause(ctx, zonePoll)
			continue
		case r.Result != nil && r.Error != "":
			return *r.Result, errors.New(r.Error)
		case r.Result != nil:
			return *r.Result, nil
		case r.Have < 0 || r.Have > part.Size:
			return transfer.Result{}, fmt.Errorf("it says that it has %d bytes of %d", r.Have, part.Size)
		}
		heard, part.Offset = time.Now(), r.Have
		if part.Offset == part.Size {
			tell(r.Progress)
			pause(ctx, zonePoll)
		} else if file.Rate > 0 {
			pause(ctx, time.Until(began.Add(time.Duration(float64(len(data))/float64(file.Rate)*float64(time.Second)))))
		}
	}
}

func sendPart(ctx context.Context, f *fleet.Fleet, zone string, part *zonePart, data []byte) (r zoneReport, err error) {
	header, err := json.Marshal(part)
	if err != nil {
		return r, err
	}
	frame := binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+len(header)+len(data)), uint64(len(header)))
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	err = askZone(ctx, f, zone, filesFleetName, append(append(frame, header...), data...), &r)
	return r, err
}

func openPart(frame []byte) (part zonePart, data []byte, err error) {
	n, size := binary.Uvarint(frame)
	if size <= 0 || n > uint64(len(frame)-size) {
		return part, nil, errors.New("a part of a file is damaged")
	}
	data = frame[size+int(n):]
	if err := json.Unmarshal(frame[size:size+int(n)], &part); err != nil {
		return part, nil, err
	}
	if part.Offset < 0 || part.Offset > part.Size || int64(len(data)) > part.Size-part.Offset {
		return part, nil, fmt.Errorf("a part of %d bytes at %d is not of a file of %d", len(data), part.Offset, part.Size)
	}
	return part, data, nil
}

// uploads are the files that an agent copies for others, as a delegate of its zone.
type uploads struct {
	mu     sync.Mutex
	all    map[string]*upload
	active int // those that are not complete
}

// upload is one of them. It is forgotten when it has not been asked for a while.
type upload struct {
	mu     sync.Mutex
	spool  *os.File
	begun  bool
	report zoneReport
	life   context.Context
	end    func() // ends the copy, if it is running
	idle   *time.Timer
}

// answerFile takes a part of a file for this zone, and says how far it is.
func (a *Agent) answerFile(_ context.Context, r fleet.Request) ([]byte, error) {
	part, data, err := openPart(r.Data)
	if err != nil {
		return nil, err
	}
	s := a.files.Load()
	if s == nil {
		return nil, api.ErrNotMember
	}
	u, err := a.uploadOf(&part)
	if err != nil {
		return nil, err
	}
	u.idle.Reset(2 * zonePatience)
	u.mu.Lock()
	defer u.mu.Unlock()
	if part.Offset == u.report.Have && len(data) > 0 {
		if _, err := u.spool.WriteAt(data, part.Offset); err != nil {
			return nil, err
		}
		u.report.Have += int64(len(data))
	}
	if u.report.Have == part.Size && !u.begun {
		u.begun = true
		go u.copy(s, &part)
	}
	return json.Marshal(u.report)
}

// uploadOf returns the upload that a part belongs to, which the first part begins.
func (a *Agent) uploadOf(part *zonePart) (*upload, error) {
	us := &a.fleet.uploads
	us.mu.Lock()
	defer us.mu.Unlock()
	if u := us.all[part.ID]; u != nil {
		return u, nil
	}
	if us.active == maxUploads {
		return nil, fmt.Errorf("%d files of other zones are on their way already", maxUploads)
	}
	spool, err := a.openSpool(part.Size)
	if err != nil {
		return nil, err
	}
	u := &upload{spool: spool}
	life, cancel := context.WithCancel(context.Background())
	u.life, u.end = life, sync.OnceFunc(func() {
		us.mu.Lock()
		defer us.mu.Unlock()
		us.active--
		cancel()
		_ = spool.Close()
	})
	u.idle = time.AfterFunc(2*zonePatience, func() {
		u.end()
		us.mu.Lock()
		defer us.mu.Unlock()
		delete(us.all, part.ID)
	})
	if us.all == nil {
		us.all = make(map[string]*upload)
	}
	us.all[part.ID] = u
	us.active++
	return u, nil
}

// copy copies the whole file to the members of this zone.
func (u *upload) copy(s *transfer.Service, part *zonePart) {
	defer u.end()
	file := transfer.File{
		Content: u.spool, Name: part.Upload.Name, Mode: part.Upload.Mode, Size: part.Size,
		Rate: part.Upload.Rate,
	}
	result, err := s.Copy(u.life, file, part.Upload.Dir, func(p transfer.Progress) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.report.Progress = p
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	u.report.Result = &result
	if err != nil {
		u.report.Error = err.Error()
	}
}
