/**
 * The result of a sweep: recommendation, charts, a row for each percentage, a row for each run, and files.
 */
import { useSearchParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createMemo, Show, type JSX } from 'solid-js'
import type { ConfigBody } from '../../../controller/api/config/schema.ts'
import type {
  SweepReportBody,
  SweptRunBody,
} from '../../../controller/api/simulations/sweep-report-schema.ts'
import { useCluster } from '../../state/cluster.tsx'
import { Advice } from './advice.tsx'
import { BeforeAfter } from './before-after.tsx'
import { CombinationTable } from './combination-table.tsx'
import { bestOf, combinationsOf, settingsText, type Combination } from './combinations.ts'
import { Comparison } from './comparison.tsx'
import { Downloads } from './downloads.tsx'
import { figuresOfRun } from './figures.ts'
import { PercentTable } from './percent-table.tsx'
import { RunGantts } from './run-gantts.tsx'
import { runKey, runName, RunTable } from './run-table.tsx'
import { SweepCharts } from './sweep-charts.tsx'

export function SweepResult(props: {
  readonly report: SweepReportBody
  readonly id: string
  readonly name: string
}): JSX.Element {
  const { api } = useCluster()
  const [search, setSearch] = useSearchParams<{ compare?: string; show?: string }>()
  const config = useQuery(() => ({
    queryKey: ['config', 'for the planner'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<ConfigBody>('/config', {}, signal),
  }))
  const current = (): number | null => config.data?.default_vram_overcommit_percent ?? null
  const combinations = createMemo(() => combinationsOf(props.report))
  const shown = createMemo(
    () =>
      combinations().find(({ name }) => name === search.show) ??
      bestOf(combinations()) ??
      (combinations()[0] as Combination),
  )
  const picked = (): readonly string[] => (search.compare ?? '').split(',').filter((key) => key !== '')
  const pick = (keys: readonly string[]): void =>
    setSearch({ compare: keys.length === 0 ? null : keys.join(',') }, { replace: true, scroll: false })
  const compared = (): readonly SweptRunBody[] =>
    props.report.runs.filter((run) => picked().includes(runKey(run)))
  return (
    <>
      <Show when={props.report.runs_done < props.report.runs_planned}>
        <p class="warn">
          {props.report.runs_done} of {props.report.runs_planned} runs finished. The results include only
          these runs.
        </p>
      </Show>
      <Show when={combinations().length > 1}>
        <CombinationTable
          combinations={combinations()}
          shown={shown()}
          onShow={({ name }) => setSearch({ show: name }, { replace: true, scroll: false })}
        />
      </Show>
      <Advice advice={shown().advice} summary={shown().summary} name={shown().name} current={current()} />
      <SweepCharts combination={shown()} current={current()} />
      <BeforeAfter simulation={props.id} combination={shown()} current={current()} />
      <PercentTable combination={shown()} />
      <RunTable
        runs={props.report.runs}
        objectives={shown().advice.objectives}
        picked={picked()}
        onPick={pick}
      />
      <Downloads id={props.id} name={props.name} />
      <Show when={compared().length >= 2}>
        <Comparison
          compared={compared().map((run) => ({ name: runName(run), figures: figuresOfRun(run) }))}
        />
        <RunGantts
          runs={compared().map((run) => ({
            name: runName(run),
            simulation: props.id,
            run: {
              overcommit_percent: run.overcommit_percent,
              seed: run.seed,
              settings: settingsText(run.settings),
            },
          }))}
        />
      </Show>
    </>
  )
}
