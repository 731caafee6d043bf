import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { advise } from '../../simulator/plan/advisor.ts'
import { DEFAULT_OBJECTIVES } from '../../simulator/plan/objective.ts'
import { axisOf } from '../../simulator/report/html/axis.ts'
import { lineChart } from '../../simulator/report/html/line-chart.ts'
import { markup } from '../../simulator/report/html/markup.ts'
import type { ChartLibrary } from '../../simulator/report/html/page.ts'
import { htmlReport } from '../../simulator/report/html/report.ts'
import { bySettings, summarize } from '../../simulator/sweep.ts'
import type { Settings } from '../../simulator/sweep.ts'
import { chartLibrary } from '../../cli/sweep/chart-library.ts'
import { sweptRun } from '../support/swept-run.ts'

const HOSTILE = `<script>alert(1)</script>"'&`

function report(name = 'plan', settings: readonly Settings[] = [{}], library: ChartLibrary | null = null): string {
  const runs = settings.flatMap((each) =>
    [0, 20, 40, 60].flatMap((percent) =>
      [1, 2, 3].map((seed) =>
        sweptRun({
          percent,
          seed,
          settings: each,
          utilization: percent === 0 ? 30 : 50 + percent / 10 + seed / 100,
          starvation: percent / 2.5 + seed / 10,
          swapsPerHour: percent,
        }),
      ),
    ),
  )
  const advice = bySettings(runs).map((group) => ({
    settings: group.settings,
    ...advise({ runs: group.runs, objectives: DEFAULT_OBJECTIVES, idleness: null }),
  }))
  return htmlReport({ name, runs, summary: summarize(runs), advice, library })
}

describe('the page of a sweep', () => {
  it('has the recommendation, its judgement, and under each chart its numbers', () => {
    const page = report()
    expect(page).toContain('Overcommit 40 %: the highest utilization that keeps starvation.total&lt;=20')
    expect(page.match(/<figure /g)).toHaveLength(4)
    expect(page.match(/<table>/g)).toHaveLength(5)
    expect(page.match(/>\s*recommended\s*<\/text>/g)).toHaveLength(4)
    expect(page).toMatch(/>\s*starvation\.total&lt;=20\s*<\/text>/)
    // 40 % on the chart of utilization, and in the table under it.
    expect(page).toMatch(/utilization, 40 %: 54\.02 %/)
    expect(page).toMatch(/<td>54\.02<\/td>\s*<td>54\.01<\/td>\s*<td>54\.03<\/td>\s*<td>54\.03<\/td>/)
  })

  it('is complete in itself: nothing is fetched, nothing is run, and its policy allows its own style alone', () => {
    const page = report()
    const style = /<style>([^]*)<\/style>/.exec(page)?.[1] as string
    const hash = createHash('sha256').update(style).digest('base64')
    expect(page).toContain(`content="default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'"`)
    expect(page).not.toMatch(/<script>|<link|<img|<iframe|https?:|url\(|@import|\son\w+=|\sstyle=|javascript:/i)
    expect(style).toContain('prefers-color-scheme: dark')
    expect(report()).toBe(page)
  })

  it('has the chart library inside, and its policy admits that and its own script, by their hashes', () => {
    const library = chartLibrary() as ChartLibrary
    const page = report('plan', [{}], library)
    const hashOf = (text: string | undefined): string =>
      `'sha256-${createHash('sha256')
        .update(text as string)
        .digest('base64')}'`
    const scripts = [...page.matchAll(/<script>([^]*?)<\/script>/g)].map(([, text]) => text)
    const styles = [...page.matchAll(/<style>([^]*?)<\/style>/g)].map(([, text]) => text)
    expect([scripts.length, styles.length]).toEqual([2, 2])
    expect(page).toContain(`style-src ${styles.map(hashOf).join(' ')}; script-src ${scripts.map(hashOf).join(' ')}; base-uri 'none'`)
    expect(scripts[0]).toContain('Permission is hereby granted')
    expect(page).not.toMatch(/<script [^t]|<link|<img|<iframe|\ssrc=|@import/)
    const data = [...page.matchAll(/<script type="application\/json">([^]*?)<\/script>/g)].map(
      ([, text]) => JSON.parse(text as string) as object,
    )
    expect(data).toHaveLength(4)
    expect(data[0]).toMatchObject({
      unit: '%',
      lines: [{ name: 'utilization', points: [{ x: 0 }, { x: 20 }, { x: 40, y: 54.02 }, { x: 60 }] }],
    })
  })

  it('escapes every name', () => {
    const page = report(HOSTILE, [{ [`workload.0.${HOSTILE}`]: HOSTILE }, { [`workload.0.${HOSTILE}`]: 1 }])
    expect(page).not.toContain('<script>')
    expect(page).not.toContain('alert(1)</script>')
    expect(page.match(/&lt;script&gt;alert\(1\)&lt;\/script&gt;&quot;&#39;&amp;/g)?.length).toBeGreaterThan(4)
    expect(page.match(/<h2>/g)).toHaveLength(3)
  })

  it('shows that nothing keeps the objective, and runs without any figure', () => {
    const runs = [1, 2].map((seed) => sweptRun({ percent: 10, seed, utilization: null, starvation: 90 }))
    const advice = [{ settings: {}, ...advise({ runs, objectives: DEFAULT_OBJECTIVES, idleness: null }) }]
    const page = htmlReport({ name: 'none', runs, summary: summarize(runs), advice, library: null })
    expect(page).toContain('<p class="advice none">')
    expect(page).toMatch(/<td>–<\/td>/)
    expect(page).not.toContain('NaN')
  })
})

describe('the page of a sweep over servers that cannot signal', () => {
  const pageOf = (unheard: number): string => {
    const runs = [0, 20].flatMap((percent) => [1, 2].map((seed) => sweptRun({ percent, seed, unheard: (unheard * percent) / 20 })))
    const advice = [{ settings: {}, ...advise({ runs, objectives: DEFAULT_OBJECTIVES, idleness: null }) }]
    return htmlReport({ name: 'unaware', runs, summary: summarize(runs), advice, library: null })
  }

  it('has what tasks waited unheard of, where some did', () => {
    expect(pageOf(0.5)).toContain('Unheard')
    expect(pageOf(0.5)).toMatch(/unheard, 20 %: 0\.50 %/)
    expect(pageOf(0)).not.toContain('nheard')
  })
})

describe('markup', () => {
  it('escapes what is put into it once, and lets markup be', () => {
    expect(markup`<b title="${'"'}">${[markup`<i>${'<'}</i>`, null, 3]}</b>`.text).toBe('<b title="&quot;"><i>&lt;</i>3</b>')
  })
})

describe('an axis', () => {
  it.each([
    [[0, 100], 0, 100, 6, 0],
    [[3, 97], 0, 100, 6, 0],
    [[0.02, 0.081], 0, 0.1, 6, 2],
    [[0, 0], 0, 1, 6, 1],
    [[12_345], 0, 15_000, 4, 0],
    [[-4, 7], -5, 10, 4, 0],
  ])('of %j goes from %d to %d in round steps', (values, from, to, ticks, digits) => {
    const axis = axisOf(values)
    expect([axis.from, axis.to]).toEqual([from, to])
    expect([axis.ticks.length, axis.digits]).toEqual([ticks, digits])
  })

  it('places a point where the chart has it', () => {
    const { text } = lineChart({
      title: 't',
      unit: '%',
      xTitle: 'x',
      limits: [{ y: 50, label: 'half' }],
      marks: [],
      lines: [
        {
          name: 'line',
          points: [
            { x: 0, y: 0 },
            { x: 100, y: 100 },
          ],
        },
      ],
    })
    expect(text).toContain('points="64.0,256.0 704.0,20.0"')
    expect(text).toContain('y1="138.0"')
    expect(text).not.toContain('polygon')
  })
})
