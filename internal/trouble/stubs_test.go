package trouble
import ("context";"github.com/pleach-go/pleach")
func counterProgram(ctx context.Context, w *pleach.World) error {return nil}
func weightsProgram(ctx context.Context, w *pleach.World) error {return nil}
func roundsProgram(ctx context.Context, w *pleach.World) error {return nil}
