/** What came of a sweep: the advice in words, charts, a row for each percentage, a row for each run, and all of it as files. */
import { useSearchParams } from '@solidjs/router'
import { Show, type JSX } from 'solid-js'
import type { SweepReportBody, SweptRunBody } from '../../../controller/api/schema/sweep-report.ts'
import { save } from '../../charts/uplot-chart.tsx'
import { Advice } from './advice.tsx'
import { Comparison } from './comparison.tsx'
import { figuresOfRun, runsCsv } from './figures.ts'
import { PercentTable } from './percent-table.tsx'
import { RunGantts } from './run-gantts.tsx'
import { runKey, RunTable } from './run-table.tsx'
import { SweepCharts } from './sweep-charts.tsx'

export function SweepResult(props: { readonly report: SweepReportBody; readonly id: string; readonly name: string }): JSX.Element {
  const [search, setSearch] = useSearchParams<{ compare?: string }>()
  const picked = (): readonly string[] => (search.compare ?? '').split(',').filter((key) => key !== '')
  const pick = (keys: readonly string[]): void =>
    setSearch({ compare: keys.length === 0 ? null : keys.join(',') }, { replace: true, scroll: false })
  const compared = (): readonly SweptRunBody[] => props.report.runs.filter((run) => picked().includes(runKey(run)))
  const saveAs = (kind: 'csv' | 'json'): void => {
    const text = kind === 'csv' ? runsCsv(props.report.runs) : JSON.stringify(props.report, null, 2)
    save(`${props.name}.${kind}`, new Blob([text], { type: kind === 'csv' ? 'text/csv' : 'application/json' }))
  }
  return (
    <>
      <Show when={props.report.runs_done < props.report.runs_planned}>
        <p class="warn">
          {props.report.runs_done} of {props.report.runs_planned} runs were done: what stands here is of these alone.
        </p>
      </Show>
      <Advice advice={props.report.advice} />
      <SweepCharts report={props.report} />
      <PercentTable report={props.report} />
      <RunTable runs={props.report.runs} objectives={props.report.advice.objectives} picked={picked()} onPick={pick}>
        <button onClick={() => saveAs('csv')}>Save runs as CSV</button>
        <button onClick={() => saveAs('json')}>Save all as JSON</button>
      </RunTable>
      <Show when={compared().length >= 2}>
        <Comparison
          compared={compared().map((run) => ({ name: `${run.overcommit_percent} %, seed ${run.seed}`, figures: figuresOfRun(run) }))}
        />
        <RunGantts
          runs={compared().map(({ overcommit_percent, seed }) => ({
            name: `${overcommit_percent} %, seed ${seed}`,
            simulation: props.id,
            run: { overcommit_percent, seed },
          }))}
        />
      </Show>
    </>
  )
}
