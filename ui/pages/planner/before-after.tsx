/** Compares two percentages over time, from the runs of the sweep: median over the seeds, with its band. */
import { useSearchParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createMemo, For, Show, type JSX } from 'solid-js'
import type { SimulationSeriesBody } from '../../../controller/api/simulations/schema.ts'
import { isFinal, pathSegment } from '../../api/client.ts'
import { CurveChart } from '../../charts/curve-chart.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { percent, seconds, UNKNOWN, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import type { Combination } from './combinations.ts'
import { curvesOf } from './curves.ts'
import styles from './planner.module.css'
import { coursesOf, sidesOf, type CourseName, type Courses, type Sides } from './run-courses.ts'

/** Maximum number of seeds per side; more would be hundreds of requests for nearly the same line. */
const MAX_SEEDS = 12
const HOUR_S = 3_600

const CHARTS: readonly (readonly [
  series: CourseName,
  name: string,
  unit: string,
  format: (value: number) => string,
])[] = [
  ['starvation_percent', 'Starvation', 'percent', (value) => percent(value)],
  ['tasks_pending', 'Pending tasks', 'tasks', (value) => value.toFixed(1)],
  ['utilization_percent', 'Utilization', 'percent', (value) => percent(value)],
  ['swap_outs', 'Swap-outs', 'per hour', (value) => whole(value)],
]

export interface BeforeAfterProps {
  readonly simulation: string
  readonly combination: Combination
  /** Percentage of the live cluster; null: unknown. */
  readonly current: number | null
}

export function BeforeAfter(props: BeforeAfterProps): JSX.Element {
  const { api } = useCluster()
  const [search, setSearch] = useSearchParams<{ before?: string; after?: string }>()
  const tried = createMemo(() => curvesOf(props.combination.runs).x)
  const chosen = (text: string | undefined): number | undefined =>
    tried().find((each) => String(each) === text)
  const sides = createMemo((): Sides | null => {
    const defaults = sidesOf(tried(), props.combination.advice, props.current)
    return defaults === null
      ? null
      : { before: chosen(search.before) ?? defaults.before, after: chosen(search.after) ?? defaults.after }
  })
  const seedsOf = (side: number): readonly number[] =>
    props.combination.runs.filter((run) => run.overcommit_percent === side).map(({ seed }) => seed)
  const courses = useQuery(() => ({
    queryKey: [
      'simulations',
      'courses',
      props.simulation,
      props.combination.name,
      sides()?.before,
      sides()?.after,
    ],
    queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Courses> => {
      const settings = props.combination.name
      const seriesOf = (side: number): Promise<readonly SimulationSeriesBody[]> =>
        Promise.all(
          seedsOf(side)
            .slice(0, MAX_SEEDS)
            .map((seed) =>
              api.get<SimulationSeriesBody>(
                `/simulations/${pathSegment(props.simulation)}/series`,
                { overcommit_percent: side, seed, ...(settings === '' ? {} : { settings }) },
                signal,
              ),
            ),
        )
      const { before, after } = sides() as Sides
      return coursesOf(await seriesOf(before), await seriesOf(after))
    },
    enabled: sides() !== null,
    staleTime: Infinity,
    retry: false,
  }))
  return (
    <Show when={sides()}>
      {(shown) => (
        <section class="card stack" aria-label="Before and after">
          <h2>Before and after</h2>
          <div class="row">
            <Choice
              name="Before"
              tried={tried()}
              value={shown().before}
              current={props.current}
              onChoose={(before) => setSearch({ before }, { replace: true, scroll: false })}
            />
            <Choice
              name="After"
              tried={tried()}
              value={shown().after}
              current={props.current}
              onChoose={(after) => setSearch({ after }, { replace: true, scroll: false })}
            />
            <span class="quiet">{seedWords(seedsOf(shown().before).length)}</span>
          </div>
          <Show when={props.current !== null && !tried().includes(props.current)}>
            <p class="quiet">The current percentage, {props.current}%, is not part of this sweep.</p>
          </Show>
          <Show
            when={!isFinal(courses.error)}
            fallback={
              <p class="quiet">
                These runs have no time series: the sweep was run with an earlier version or is too large.
              </p>
            }
          >
            <QueryState query={courses}>
              {(found) => (
                <div class={styles['charts']}>
                  <For each={CHARTS}>
                    {([series, name, unit, format]) => (
                      <CourseChart
                        courses={found()}
                        series={series}
                        name={name}
                        unit={unit}
                        format={format}
                        sides={shown()}
                      />
                    )}
                  </For>
                </div>
              )}
            </QueryState>
          </Show>
        </section>
      )}
    </Show>
  )
}

interface ChoiceProps {
  readonly name: string
  readonly tried: readonly number[]
  readonly value: number
  readonly current: number | null
  readonly onChoose: (percent: string) => void
}

function Choice(props: ChoiceProps): JSX.Element {
  return (
    <label>
      {props.name}{' '}
      <select value={String(props.value)} onChange={(event) => props.onChoose(event.currentTarget.value)}>
        <For each={props.tried}>
          {(each) => (
            <option value={String(each)} selected={each === props.value}>
              {each}%{each === props.current ? ' (current)' : ''}
            </option>
          )}
        </For>
      </select>
    </label>
  )
}

interface CourseChartProps {
  readonly courses: Courses
  readonly series: CourseName
  readonly name: string
  readonly unit: string
  readonly format: (value: number) => string
  readonly sides: Sides
}

function CourseChart(props: CourseChartProps): JSX.Element {
  const course = () => props.courses.of[props.series]
  const isLong = (): boolean => (props.courses.ends.at(-1) ?? 0) > 3 * HOUR_S
  const words = (value: number | null | undefined): string =>
    value === null || value === undefined ? UNKNOWN : props.format(value)
  const side = (name: 'before' | 'after', index: number): string => {
    const { values, band } = course()[name]
    return (
      `${props.sides[name]}%: ${words(values[index])} (${words(band[0][index])} to ` +
      `${words(band[1][index])})`
    )
  }
  return (
    <CurveChart
      name={`${props.name}, before and after`}
      xName={isLong() ? 'hours of virtual time' : 'minutes of virtual time'}
      yName={props.unit}
      x={props.courses.ends.map((each) => each / (isLong() ? HOUR_S : 60))}
      curves={[
        { name: `before: ${props.sides.before}%`, colour: '--foreign', ...course().before },
        { name: `after: ${props.sides.after}%`, colour: '--accent', ...course().after },
      ]}
      describe={(index) =>
        `Interval ending at ${seconds(props.courses.ends[index])}: ${side('before', index)}, ` +
        side('after', index)
      }
    />
  )
}

function seedWords(seeds: number): string {
  if (seeds === 1) return 'With one seed, there is no band.'
  const which = seeds > MAX_SEEDS ? `the first ${MAX_SEEDS} of ${seeds} seeds` : `${seeds} seeds`
  return `Median and p10–p90 over ${which}; both sides have the same arrivals for each seed.`
}
