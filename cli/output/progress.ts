/**
 * Shows the progress of a command on stderr: a bar on a terminal, otherwise a line at every tenth. Nothing
 * for work of less than two seconds.
 */

const SILENT_MS = 2_000
const BAR_STEPS = 1_000
/** A smaller fraction is too little for an estimate. */
const MIN_FRACTION_FOR_ESTIMATE = 0.02

/**
 * Receives the fraction of work done, 0 to 1; may be called often. `detail` is printed after it (rows,
 * rates).
 */
export type OnProgress = (fraction: number, detail?: string) => void

/** @param label what is in progress, in a word or two */
export async function withProgress<T>(
  label: string,
  work: (onProgress: OnProgress) => Promise<T>,
  stream: NodeJS.WriteStream = process.stderr,
): Promise<T> {
  const startedAt = performance.now()
  const painter = stream.isTTY ? await barPainter(label, stream) : linePainter(label, stream)
  let isPainting = false
  try {
    return await work((fraction, detail) => {
      if (!isPainting && performance.now() - startedAt < SILENT_MS) return
      isPainting = true
      const shown = Math.min(1, Math.max(0, fraction))
      const left = timeLeft(shown, performance.now() - startedAt)
      painter.paint(shown, [left, detail ?? ''].filter((text) => text !== '').join(', '))
    })
  } finally {
    if (isPainting) painter.end()
  }
}

/** Returns `40 s left`; empty at the end, and while the fraction is too small. Assumes a constant rate. */
export function timeLeft(fraction: number, elapsedMs: number): string {
  if (fraction < MIN_FRACTION_FOR_ESTIMATE || fraction >= 1) return ''
  const seconds = Math.ceil((elapsedMs * (1 - fraction)) / fraction / 1000)
  if (seconds < 120) return `${seconds} s left`
  return seconds < 7200 ? `${Math.ceil(seconds / 60)} min left` : `${(seconds / 3600).toFixed(1)} h left`
}

interface Painter {
  /** @param left text after the fraction; may be empty */
  paint(fraction: number, left: string): void
  end(): void
}

async function barPainter(label: string, stream: NodeJS.WriteStream): Promise<Painter> {
  const { default: cliProgress } = await import('cli-progress')
  const bar = new cliProgress.SingleBar({
    format: `${label} {bar} {percentage}% | {duration_formatted} so far {left}`,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    hideCursor: true,
    clearOnComplete: true,
    stream,
  })
  let shown = -1
  return {
    paint(fraction, left) {
      const step = Math.floor(fraction * BAR_STEPS)
      if (shown === -1) bar.start(BAR_STEPS, step, { left })
      else if (step !== shown) bar.update(step, { left })
      shown = step
    },
    end: () => bar.stop(),
  }
}

function linePainter(label: string, stream: NodeJS.WriteStream): Painter {
  let shown = 0
  return {
    paint(fraction, left) {
      const tenth = Math.floor(fraction * 10 + 1e-9)
      if (tenth <= shown) return
      shown = tenth
      stream.write(`${label}: ${tenth * 10}%${left === '' ? '' : `, ${left}`}\n`)
    },
    end() {},
  }
}
