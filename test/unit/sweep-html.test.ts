import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { advise } from '../../simulator/experiment/advisor/advisor.ts'
import { DEFAULT_OBJECTIVES } from '../../simulator/experiment/advisor/objective.ts'
import { axisOf } from '../../simulator/report/html/axis.ts'
import { lineChart } from '../../simulator/report/html/line-chart.ts'
import { markup } from '../../simulator/report/html/markup.ts'
import type { ChartLibrary } from '../../simulator/report/html/page.ts'
import { htmlReport } from '../../simulator/report/html/report.ts'
import { SharedMarks } from '../../simulator/report/html/shared-marks.ts'
import { bySettings, summarize } from '../../simulator/experiment/sweep/sweep.ts'
import type { Settings } from '../../simulator/experiment/sweep/sweep.ts'
import { chartLibrary } from '../../services/sweep/sweep-report.ts'
import { sweptRun } from '../support/swept-run.ts'

const HOSTILE = `<script>alert(1)</script>"'&`

function report(
  name = 'plan',
  settings: readonly Settings[] = [{}],
  library: ChartLibrary | null = null,
): string {
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
  it('has the recommendation with its reason, and the numbers of each chart', () => {
    const page = report()
    expect(page).toContain(
      'It has the highest utilization of all percentages that meet starvation.total&lt;=20',
    )
    expect(page.match(/<figure /g)).toHaveLength(4)
    expect(page.match(/<table>/g)).toHaveLength(5)
    expect(page.match(/<figure [^]*?<\/figure>/g)?.every((figure) => figure.includes('<table>'))).toBe(true)
    // One for each chart, and one for the queue wait, which has no point.
    expect(page.match(/>recommended<\/text>/g)).toHaveLength(2)
    expect(page).toMatch(/>\s*starvation\.total&lt;=20\s*<\/text>/)
    // 40 % in the table below the utilization chart.
    expect(page).toContain('<tr><th scope=row>40<td>54.02<td>54.01<td>54.03<td>54.03\n')
  })

  it('is self-contained: no requests, no scripts, and a policy for its own style only', () => {
    const page = report()
    const style = /<style>([^]*)<\/style>/.exec(page)?.[1] as string
    const hash = createHash('sha256').update(style).digest('base64')
    expect(page).toContain(
      `content="default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'"`,
    )
    expect(page).not.toMatch(
      /<script>|<link|<img|<iframe|https?:|url\((?!#)|@import|\son\w+=|\sstyle=|javascript:/i,
    )
    expect(style).toContain('prefers-color-scheme: dark')
    expect(report()).toBe(page)
  })

  it('contains the chart library, and a policy that allows only its scripts by hash', () => {
    const library = chartLibrary() as ChartLibrary
    const page = report('plan', [{}], library)
    const hashOf = (text: string | undefined): string =>
      `'sha256-${createHash('sha256')
        .update(text as string)
        .digest('base64')}'`
    const scripts = [...page.matchAll(/<script>([^]*?)<\/script>/g)].map(([, text]) => text)
    const styles = [...page.matchAll(/<style>([^]*?)<\/style>/g)].map(([, text]) => text)
    expect([scripts.length, styles.length]).toEqual([2, 2])
    expect(page).toContain(
      `style-src ${styles.map(hashOf).join(' ')}; script-src ${scripts.map(hashOf).join(' ')}; ` +
        `base-uri 'none'`,
    )
    expect(scripts[0]).toContain('Permission is hereby granted')
    expect(page).not.toMatch(/<script [^t]|<link|<img|<iframe|\ssrc=|@import/)
    const data = [...page.matchAll(/<script type="application\/json">([^]*?)<\/script>/g)].map(
      ([, text]) => JSON.parse(text as string) as { readonly marks: readonly object[] },
    )
    expect(data).toHaveLength(4)
    expect(data[1]).toEqual({
      unit: '%',
      limits: [{ y: 20, label: 'starvation.total<=20' }],
      marks: [{ x: 40, label: 'recommended' }, ...data[0]!.marks.slice(1)],
    })
  })

  it('escapes every name', () => {
    const page = report(HOSTILE, [{ [`workload.0.${HOSTILE}`]: HOSTILE }, { [`workload.0.${HOSTILE}`]: 1 }])
    expect(page).not.toContain('<script>')
    expect(page).not.toContain('alert(1)</script>')
    expect(page.match(/&lt;script&gt;alert\(1\)&lt;\/script&gt;&quot;&#39;&amp;/g)?.length).toBeGreaterThan(4)
    expect(page.match(/<summary>/g)).toHaveLength(2)
  })

  it('shows that no percentage keeps the objective, and runs without figures', () => {
    const runs = [1, 2].map((seed) => sweptRun({ percent: 10, seed, utilization: null, starvation: 90 }))
    const advice = [{ settings: {}, ...advise({ runs, objectives: DEFAULT_OBJECTIVES, idleness: null }) }]
    const page = htmlReport({ name: 'none', runs, summary: summarize(runs), advice, library: null })
    expect(page).toContain('<p class="advice none">')
    expect(page).toContain('<td>–<td>–<td>–<td>–\n')
    expect(page).not.toContain('NaN')
  })
})

describe('the page of a sweep of servers that cannot signal', () => {
  const pageOf = (unheard: number): string => {
    const runs = [0, 20].flatMap((percent) =>
      [1, 2].map((seed) => sweptRun({ percent, seed, unheard: (unheard * percent) / 20 })),
    )
    const advice = [{ settings: {}, ...advise({ runs, objectives: DEFAULT_OBJECTIVES, idleness: null }) }]
    return htmlReport({ name: 'unaware', runs, summary: summarize(runs), advice, library: null })
  }

  it('has a chart of unsignalled waits if there were any', () => {
    expect(pageOf(0.5)).toContain('Unsignalled wait')
    expect(pageOf(0.5)).toContain('<th scope=col>unsignalled wait')
    expect(pageOf(0.5)).toContain('<tr><th scope=row>20<td>0.50<td>0.50<td>0.50<td>0.50\n')
    expect(pageOf(0)).not.toContain('nsignalled wait')
  })
})

describe('the page of many combinations', () => {
  const fields = (count: number): readonly Settings[] =>
    Array.from({ length: count }, (_, i) => ({ 'fleet.0.count': i + 1 }))

  it('names the best one and links to each; above four only the best is open', () => {
    const page = report('plan', fields(6))
    expect(page).toContain('Best of 6 combinations: fleet.0.count=1. Overcommit 40% instead of')
    expect(page.match(/<a href="#c\d">/g)).toHaveLength(6)
    expect(page.match(/<div id="c\d">/g)).toHaveLength(6)
    expect(page.match(/<details open><summary>fleet\.0\.count=1</g)).toHaveLength(1)
    expect(page.match(/<details>/g)).toHaveLength(5)
    expect(report('plan', fields(4)).match(/<details open>/g)).toHaveLength(4)
    expect(report('plan', fields(1))).not.toMatch(/<details|Best of/)
  })

  it('shares the grids of its charts, and needs at most 12,000 characters per combination', () => {
    const runs = fields(40).flatMap((settings, i) =>
      Array.from({ length: 11 }, (_, at) =>
        sweptRun({
          percent: 20 * at,
          seed: 1,
          settings,
          utilization: 50 + at + i / 7,
          starvation: (3 * at * (i + 1)) / 41,
          swapsPerHour: (7 * at) / 3,
          queueWait: { mean: at, p50: 11 * at, p95: 700 + 3 * at * i, p99: 9000 },
        }),
      ),
    )
    const advice = bySettings(runs).map((group) => ({
      settings: group.settings,
      ...advise({ runs: group.runs, objectives: DEFAULT_OBJECTIVES, idleness: null }),
    }))
    const page = htmlReport({ name: 'many', runs, summary: summarize(runs), advice, library: null })
    expect(page.match(/class="tick middle"[^>]*>\s*overcommit, %/g)).toHaveLength(1)
    const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
    expect(new Set(ids).size).toBe(ids.length)
    for (const [, id] of page.matchAll(/href="#([^"]+)"|url\(#([^)]+)\)/g))
      if (id !== undefined) expect(ids).toContain(id)
    expect(page.length / 40).toBeLessThan(12_000)
  })
})

describe('the markup template', () => {
  it('removes line breaks between tags, and keeps spaces between words', () => {
    expect(
      markup`<p>
        one
        two ${'three'}
        four
      </p>
      <p>
        ${'five'}
      </p>`.text,
    ).toBe('<p>one two three four</p><p>five</p>')
  })

  it('escapes inserted text once, and inserted markup never', () => {
    expect(markup`<b title="${'"'}">${[markup`<i>${'<'}</i>`, null, 3]}</b>`.text).toBe(
      '<b title="&quot;"><i>&lt;</i>3</b>',
    )
  })
})

describe('an axis of a chart', () => {
  it.each([
    [[0, 100], 0, 100, 6, 0],
    [[3, 97], 0, 100, 6, 0],
    [[0.02, 0.081], 0, 0.1, 6, 2],
    [[0, 0], 0, 1, 6, 1],
    [[12_345], 0, 15_000, 4, 0],
    [[-4, 7], -5, 10, 4, 0],
  ])('of %j runs from %d to %d in round steps', (values, from, to, ticks, digits) => {
    const axis = axisOf(values)
    expect([axis.from, axis.to]).toEqual([from, to])
    expect([axis.ticks.length, axis.digits]).toEqual([ticks, digits])
  })

  it('positions a point where the chart has it', () => {
    const shared = new SharedMarks()
    const { text } = lineChart(
      {
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
      },
      markup``,
      shared,
    )
    // From the lower left to the upper right.
    expect(text).toContain('<path class="line l0" d="M64 256l640-236" />')
    expect(text).toContain('y1="138"')
    expect(text).not.toContain('band')
    expect(shared.all().text).toContain('M64 20V256')
  })
})
