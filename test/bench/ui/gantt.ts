/** Layout and drawing of 32,000 bars of a Gantt chart: the residency of a server over weeks. */
import { TestBrowser } from '../../support/browser.ts'
import { ganttScript } from '../../support/gantt-in-page.ts'
import type { Reading } from '../targets.ts'
import type { UiMeasure } from './ui-targets.ts'

const ROUNDS = 25

export async function measureGantt(): Promise<readonly Reading<UiMeasure>[]> {
  const browser = await TestBrowser.start()
  try {
    const { page } = await browser.page()
    // The image is read back, so that the drawing has really happened.
    const all = await page.evaluate<readonly number[]>(
      ganttScript(`return Array.from({ length: ${ROUNDS} }, () => {
        const begun = performance.now()
        drawAll()
        ctx.getImageData(0, 0, 1, 1)
        return performance.now() - begun
      })`),
    )
    const sorted = all.toSorted((a, b) => a - b)
    const range = `${sorted[0]?.toFixed(1)} to ${sorted.at(-1)?.toFixed(1)} ms`
    const note = `median of ${ROUNDS}, ${range}; 32,000 bars`
    return [{ name: 'gantt_ms', value: sorted[ROUNDS >> 1] as number, note }]
  } finally {
    await browser.end()
  }
}
