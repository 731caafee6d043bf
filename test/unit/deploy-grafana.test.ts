import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'

const FOLDER = join(import.meta.dirname, '../../deploy/grafana')

interface Panel {
  readonly id: number
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets: readonly { readonly expr: string }[]
}

const dashboard = JSON.parse(readFileSync(join(FOLDER, 'dashboards/headroom.json'), 'utf8')) as {
  readonly uid: string
  readonly panels: readonly Panel[]
}
const metrics = metricsOfDashboard()

describe('the Grafana dashboard', () => {
  it('uses documented metrics with their labels and according to their type', () => {
    for (const { title, targets } of dashboard.panels) {
      for (const { expr } of targets) {
        const [, name, suffix] = /\b(headroom_[a-z_]+?)(_bucket)?(?=[{[) ]|$)/.exec(expr) ?? []
        const metric = metrics.get(name ?? '')
        expect([title, name, metric !== undefined]).toEqual([title, name, true])
        expect([title, metric?.type === 'histogram']).toEqual([title, suffix === '_bucket'])
        expect([title, metric?.type === 'counter' || suffix === '_bucket']).toEqual([
          title,
          expr.includes('rate('),
        ])
        const labels = [...expr.matchAll(/by \(([^)]*)\)|\{([^}]*)\}/g)].flatMap(([, by, where]) =>
          (by ?? where ?? '').split(',').map((each) => each.trim().split('=')[0] as string),
        )
        for (const label of labels)
          expect([title, [...(metric?.labels ?? []), 'le']]).toEqual([title, expect.arrayContaining([label])])
      }
    }
  })

  it('shows every documented metric', () => {
    const shown = dashboard.panels
      .flatMap(({ targets }) => targets)
      .map(({ expr }) => expr)
      .join('\n')
    for (const name of metrics.keys()) expect(shown).toContain(name)
  })

  it('the documented metrics are exactly those of the API design', () => {
    const designed = [
      'headroom_build_info',
      'headroom_gpu_utilization_ratio',
      'headroom_node_heartbeat_age_seconds',
      'headroom_overcommit_percent',
      'headroom_scheduler_decision_seconds',
      'headroom_starvation_ratio',
      'headroom_swap_duration_seconds',
      'headroom_swap_fairness_jain',
      'headroom_swaps_total',
      'headroom_task_wait_seconds',
      'headroom_tasks',
      'headroom_tasks_pending',
      'headroom_vram_bytes',
    ]
    expect(new Set(metrics.keys())).toEqual(new Set(designed))
  })

  it('The dashboard has panels with unique names and ids that do not overlap', () => {
    const { panels } = dashboard
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length)
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)}/${y + Math.floor(i / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
  })

  it('is in the folder of the provisioning file', () => {
    const { providers } = parse(
      readFileSync(join(FOLDER, 'provisioning/dashboards/headroom.yaml'), 'utf8'),
    ) as {
      readonly providers: readonly { readonly options: { readonly path: string } }[]
    }
    const path = providers[0]?.options.path ?? ''
    expect(readFileSync(join(FOLDER, 'README.md'), 'utf8')).toContain(
      `./deploy/grafana/dashboards:${path}:ro`,
    )
    const sources = parse(readFileSync(join(FOLDER, 'provisioning/datasources/prometheus.yaml'), 'utf8')) as {
      readonly datasources: readonly { readonly type: string }[]
    }
    expect(sources.datasources.map(({ type }) => type)).toEqual(['prometheus'])
  })
})

/** Reads the metrics that docs/metrics.md marks with *: those that the dashboard shows. */
function metricsOfDashboard(): ReadonlyMap<
  string,
  { readonly type: string; readonly labels: readonly string[] }
> {
  const rows = readFileSync(join(FOLDER, '../../docs/metrics.md'), 'utf8').matchAll(
    /^\| `(headroom_\w+)` \* \| (\w+) \|([^|]*)\|/gm,
  )
  return new Map(
    [...rows].map(([, name, type, labels]) => [
      name as string,
      { type: type as string, labels: (labels as string).split(',').map((each) => each.trim()) },
    ]),
  )
}
