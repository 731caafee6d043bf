/** Forecasts as parts of other answers: there, or a reason why not. */
import type { NoForecast, SettingsChange, StartForecast, Twin } from '../../ports/twin.ts'
import type { TaskRequest } from '../../../protocol/task.ts'
import { isForecast, TRIED_TASK_ID } from '../../ports/twin.ts'
import { presentChange, presentNoForecast, presentStart } from './present.ts'
import type { ChangeForecastBody, StartForecastBody } from './schema.ts'

const NO_SIMULATOR = 'NO_SIMULATOR: this controller has no simulator.'
const NOT_ASKED = 'NOT_ASKED: send forecast=true to get a forecast.'
const NOT_YET = 'NOT_YET: the forecast is being computed; try again in a few seconds, or send forecast=wait.'
const NOT_NEW =
  'NOT_YET: the task was submitted after the latest forecast started; try again in a few seconds, or ' +
  'send forecast=wait.'
const STARTS_NOW = 'NOT_NEEDED: the task would start immediately.'
const NOT_WAITING = 'NOT_NEEDED: the task does not wait for its first start.'

export interface StartPart {
  readonly forecast: StartForecastBody | null
  readonly forecast_unavailable_because: string | null
}

export interface ChangePart {
  readonly forecast: ChangeForecastBody | null
  readonly forecast_unavailable_because: string | null
}

/** When a task would start. @param isWaiting for its first start */
export async function startPart(
  twin: Twin | null,
  taskId: string,
  isWaiting: boolean,
  asked: 'none' | 'latest' | 'wait',
): Promise<StartPart> {
  if (!isWaiting || asked === 'none') return without(isWaiting ? NOT_ASKED : NOT_WAITING)
  if (twin === null) return without(NO_SIMULATOR)
  const answer = asked === 'wait' ? await twin.starts() : twin.latestStarts()
  const part = partOf(answer, taskId)
  // One that came after the forecast was begun is in the next.
  if (asked === 'wait' && part.forecast_unavailable_because === NOT_NEW)
    return partOf(await twin.starts(true), taskId)
  return part
}

function partOf(answer: StartForecast | NoForecast | null, taskId: string): StartPart {
  if (answer === null) return without(NOT_YET)
  if (!isForecast(answer)) return without(presentNoForecast(answer))
  const forecast = presentStart(answer, taskId)
  return forecast === null ? without(NOT_NEW) : { forecast, forecast_unavailable_because: null }
}

/** When a task would start that is not submitted. */
export async function triedPart(
  twin: Twin | null,
  request: TaskRequest,
  isAsked: boolean,
  wouldWait: boolean,
): Promise<StartPart> {
  if (!isAsked || !wouldWait) return without(isAsked ? STARTS_NOW : NOT_ASKED)
  if (twin === null) return without(NO_SIMULATOR)
  return partOf(await twin.tryTask(request), TRIED_TASK_ID)
}

/** Forecasts the effect of a change. */
export async function changePart(
  twin: Twin | null,
  change: SettingsChange,
  isAsked: boolean,
): Promise<ChangePart> {
  if (!isAsked) return without(NOT_ASKED)
  if (twin === null) return without(NO_SIMULATOR)
  const answer = await twin.tryChange(change)
  if (!isForecast(answer)) return without(presentNoForecast(answer))
  return { forecast: presentChange(answer), forecast_unavailable_because: null }
}

function without(because: string): {
  readonly forecast: null
  readonly forecast_unavailable_because: string
} {
  return { forecast: null, forecast_unavailable_because: because }
}
