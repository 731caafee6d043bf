/** A recording that is kept as lines of JSON, like a file. */
import type { RecordedEntry, RecordingLog } from '../../controller/ports/recording-log.ts'
import { InputRecorder } from '../../controller/recording/input-recorder.ts'

export class RecordingInMemory implements RecordingLog {
  readonly isOpen = true
  readonly lines: string[] = []
  nested = 0

  append(entry: RecordedEntry): void {
    this.lines.push(JSON.stringify(entry))
  }

  /** For one start of a controller. */
  readonly recorder = (): InputRecorder => new InputRecorder(this, 'test', () => (this.nested += 1))

  entries(): RecordedEntry[] {
    return this.lines.map((line) => JSON.parse(line) as RecordedEntry)
  }
}
