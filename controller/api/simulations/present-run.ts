/** A simulated run as it can be looked at again. */
import type { RunReplay, RunResidency, SimulationSeries } from '../../ports/simulation.ts'
import type { RunResidencyBody, SimulationSeriesBody } from './schema.ts'

export function presentRunSeries({ x, columns }: SimulationSeries): SimulationSeriesBody {
  return { x, series: columns }
}

export function presentRunResidency({
  gpus,
  gpuCount,
  endMs,
  cutAtMs,
  tasks,
  bars,
}: RunResidency): RunResidencyBody {
  const { gpu, task, kind, fromMs, toMs } = bars
  return {
    gpus,
    gpu_count: gpuCount,
    ends_seconds: endMs / 1000,
    cut_at_seconds: cutAtMs === null ? null : cutAtMs / 1000,
    tasks,
    bars: { gpu, task, kind, from_seconds: fromMs.map(inSeconds), to_seconds: toMs.map(inSeconds) },
  }
}

export function presentReplay({ residency, series }: RunReplay) {
  return { residency: presentRunResidency(residency), series: presentRunSeries(series) }
}

function inSeconds(ms: number): number {
  return ms / 1000
}
