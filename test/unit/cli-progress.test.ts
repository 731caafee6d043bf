import { Writable } from 'node:stream'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { timeLeft, withProgress } from '../../cli/output/progress.ts'

/** Collects written text, as stderr would show it. */
function stream(isTTY: boolean): NodeJS.WriteStream & { readonly text: () => string } {
  let text = ''
  const writable = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString()
      done()
    },
  })
  const terminal = {
    isTTY,
    columns: 80,
    rows: 24,
    cursorTo: () => true,
    clearLine: () => true,
    moveCursor: () => true,
  }
  return Object.assign(writable, terminal, { text: () => text }) as unknown as NodeJS.WriteStream & {
    readonly text: () => string
  }
}

/** Replaces real time with a clock that the test sets. */
let nowMs = 0
function stopTime(): void {
  nowMs = 0
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
}

describe('progress output', () => {
  afterEach(() => vi.restoreAllMocks())

  it('is empty if the work takes less than two seconds', async () => {
    stopTime()
    const to = stream(false)
    const answer = await withProgress(
      'quick',
      async (onProgress) => {
        for (let percent = 0; percent <= 100; percent++) onProgress(percent / 100)
        return 7
      },
      to,
    )
    expect([answer, to.text()]).toEqual([7, ''])
  })

  it('is one line per 10% without a terminal', async () => {
    stopTime()
    const to = stream(false)
    await withProgress(
      'slow',
      async (onProgress) => {
        nowMs = 2_500
        for (const fraction of [0.05, 0.1, 0.15, 0.42, 0.45, 0.9, 1, 1.2]) onProgress(fraction)
      },
      to,
    )
    expect(to.text()).toBe('slow: 10%, 23 s left\nslow: 40%, 4 s left\nslow: 90%, 1 s left\nslow: 100%\n')
  })

  it('estimates the remaining time once there is enough data', () => {
    expect(timeLeft(0.01, 1000)).toBe('')
    expect(timeLeft(0.5, 119_000)).toBe('119 s left')
    expect(timeLeft(0.5, 121_000)).toBe('3 min left')
    expect(timeLeft(0.25, 3_600_000)).toBe('3.0 h left')
    expect(timeLeft(1, 1000)).toBe('')
  })

  it('shows the detail that the work reports', async () => {
    stopTime()
    for (const [isTTY, shown] of [
      [false, 'rows: 50%, 3 s left, 1,000 rows, 10 a second\n'],
      [true, 'so far 3 s left, 1,000 rows, 10 a second'],
    ] as const) {
      const to = stream(isTTY)
      nowMs = 0
      await withProgress(
        'rows',
        async (onProgress) => {
          nowMs = 2_500
          onProgress(0.5, '1,000 rows, 10 a second')
        },
        to,
      )
      expect(to.text()).toContain(shown)
    }
  })

  it('is a bar on a terminal, removed at the end, also when the work fails', async () => {
    stopTime()
    const to = stream(true)
    const work = withProgress(
      'bar',
      async (onProgress) => {
        nowMs = 2_500
        onProgress(0.25)
        nowMs = 4_000
        onProgress(0.5)
        throw new Error('broken')
      },
      to,
    )
    await expect(work).rejects.toThrow('broken')
    expect(to.text()).toContain('bar ')
    expect(to.text()).toContain('25%')
    expect(to.text()).toContain('8 s left')
  })
})
