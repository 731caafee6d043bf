/** The work of the dashboard's main thread, second by second, from the tracing of the browser. */
import type { TestBrowser } from '../../support/browser.ts'

const SETTLE_MS = 10_000
const SECOND_US = 1_000_000

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  /** µs */
  readonly ts: number
  readonly dur?: number
  /** CPU time of the thread, µs. */
  readonly tdur?: number
  readonly args: { readonly name?: string }
}

export interface MainThread {
  /**
   * CPU time of all tasks in each second: a summary arrives each second, lists are read again as tasks start
   * and end, charts every ten.
   */
  readonly perSecondMs: readonly number[]
  /** Of one task, in wall time. */
  readonly longestMs: number
}

export async function secondsOfMainThread(
  browser: TestBrowser,
  url: string,
  forMs: number,
): Promise<MainThread> {
  const { page } = await browser.page()
  await page.goto(url)
  await page.locator('[data-revision]').waitFor()
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
  const cdp = await page.context().newCDPSession(page)
  const events: TraceEvent[] = []
  cdp.on('Tracing.dataCollected', ({ value }) => events.push(...(value as unknown as TraceEvent[])))
  const before = await page.locator('[data-revision]').getAttribute('data-revision')
  await cdp.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['toplevel', 'blink.user_timing'] },
  })
  // Identifies the process of this page.
  await page.evaluate(`performance.mark('of this page')`)
  await new Promise((resolve) => setTimeout(resolve, forMs))
  const complete = new Promise((resolve) => cdp.once('Tracing.tracingComplete', resolve))
  await cdp.send('Tracing.end')
  await complete
  if ((await page.locator('[data-revision]').getAttribute('data-revision')) === before)
    throw new Error('no event has happened meanwhile')
  await page.context().close()
  const mark = events.find(({ name }) => name === 'of this page')
  const tasks = events.filter(
    ({ name, pid, tid, dur }) =>
      name === 'ThreadControllerImpl::RunTask' && pid === mark?.pid && tid === mark.tid && dur !== undefined,
  )
  if (tasks.length === 0) throw new Error('the trace has no tasks of the main thread')
  return { perSecondMs: secondsOf(tasks), longestMs: Math.max(...tasks.map(({ dur = 0 }) => dur)) / 1000 }
}

function secondsOf(tasks: readonly TraceEvent[]): readonly number[] {
  const from = Math.min(...tasks.map(({ ts }) => ts))
  const to = Math.max(...tasks.map(({ ts }) => ts))
  const sums = Array.from({ length: Math.floor((to - from) / SECOND_US) }, () => 0)
  let end = 0
  for (const { ts, dur = 0, tdur = 0 } of tasks.toSorted((a, b) => a.ts - b.ts)) {
    // A nested task is already part of the outer one.
    if (ts < end) continue
    end = ts + dur
    const second = Math.floor((ts - from) / SECOND_US)
    if (second < sums.length) sums[second] = (sums[second] ?? 0) + tdur / 1000
  }
  return sums
}
