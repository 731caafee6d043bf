/** The process of one session. */
import { readFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Readable } from 'node:stream'
import type { ForwardedRequest } from '../../../controller/ports/simulation.ts'
import { planOf } from '../../../simulator/run/run.ts'
import { loadExercise } from '../../../simulator/exercise/load-exercise.ts'
import { ScenarioError } from '../../../simulator/document/problem.ts'
import { readRunInput } from '../../runs/run-input.ts'
import { linkToParent } from '../../workers/worker-link.ts'
import { lowerPriority, NICE_ASKED } from '../../workers/low-priority.ts'
import { LimitReached } from '../jobs/run-job.ts'
import { sessionHorizonMs, whyTooLarge } from '../library/scenario-facts.ts'
import { SessionHost, type SessionHostOptions } from './session-host.ts'
import type { FromSession, SessionJob, ToSession } from './session-messages.ts'
import { injected, NO_CONTROLLER, textHeaders, type SessionAnswer } from './session-world.ts'

/** Interval of progress reports to the controller. */
const PROGRESS_INTERVAL_MS = 250

const SAFE = new Set(['GET', 'HEAD'])

lowerPriority(NICE_ASKED)
const parent = linkToParent()
const post = (message: FromSession): void => parent.post(message)
const readers = new Map<number, { more(): void; enough(): void }>()
let host: SessionHost | null = null
/** The virtual time last reported to the controller. */
let answered = -1

parent.listen((heard) => {
  const message = heard as ToSession
  answer(message).catch((error: unknown) => {
    const { name, message: text, stack } = error instanceof Error ? error : new Error(String(error))
    post({ n: message.n, kind: 'failed', name, message: text, stack })
  })
})

async function answer(message: ToSession): Promise<void> {
  const { n } = message
  switch (message.kind) {
    case 'open':
      host = await SessionHost.open({ ...message.job, ...(await readPlan(message.job)) })
      setInterval(sendProgress, PROGRESS_INTERVAL_MS)
      return post({ n, kind: 'view', view: host.view() })
    case 'control':
      return post({ n, kind: 'view', view: await opened().control(message.command) })
    case 'branch':
      return post({ n, kind: 'branch', branch: await opened().branch(message.snapshot) })
    case 'break':
      return injectFault(message)
    case 'faults':
      return post({ n, kind: 'faults', faults: opened().faults() })
    case 'exercise':
      return post({ n, kind: 'exercise', view: opened().exercise() })
    case 'answer':
      return post({ n, kind: 'exercise', view: await opened().answer(message) })
    case 'finish':
      return post({ n, kind: 'debrief', debrief: await opened().finish() })
    case 'ask':
      return SAFE.has(message.request.method) ? read(n, message.request) : write(n, message.request)
    case 'more':
    case 'enough':
      return readers.get(n)?.[message.kind]()
  }
}

async function injectFault({
  n,
  entry,
  isHidden,
  by,
}: Extract<ToSession, { readonly kind: 'break' }>): Promise<void> {
  try {
    await opened().injectFault(entry, isHidden, by)
    post({ n, kind: 'faults', faults: opened().faults() })
  } catch (error) {
    if (!(error instanceof ScenarioError)) throw error
    post({ n, kind: 'problems', problems: error.problems })
  }
}

function opened(): SessionHost {
  if (host === null) throw new Error('the session was not opened')
  return host
}

async function readPlan({
  source,
  choices,
}: SessionJob): Promise<Pick<SessionHostOptions, 'plan' | 'exercise'>> {
  if (typeof source === 'object' && 'exercise' in source) {
    const exercise = loadExercise(
      readFileSync(source.exercise, 'utf8'),
      dirname(source.exercise),
      basename(source.exercise),
    )
    const { clock } = exercise.scenario
    return { plan: { ...exercise.scenario, clock: { ...clock, untilMs: exercise.endsAtMs } }, exercise }
  }
  const { scenario, expectedTasks } = await readRunInput(
    source,
    [],
    new Map(),
    sessionHorizonMs(choices.untilMs),
  )
  const tooLarge = whyTooLarge({ nodes: 0, gpus: 0, expectedTasks: Math.ceil(expectedTasks) })
  if (tooLarge !== null) throw new LimitReached(tooLarge)
  const plan = planOf(scenario, {
    ...(choices.seed === null ? {} : { seed: choices.seed }),
    ...(choices.untilMs === null ? {} : { untilMs: choices.untilMs }),
    ...(choices.overcommitPercent === null ? {} : { overcommitPercent: choices.overcommitPercent }),
  })
  return { plan, exercise: null }
}

function sendProgress(): void {
  const { virtualMs, endMs } = opened().progress
  if (virtualMs === answered) return
  answered = virtualMs
  post({ n: 0, kind: 'progress', virtualMs, endMs })
}

async function write(n: number, { method, path, headers, body, by, role }: ForwardedRequest): Promise<void> {
  sendAnswer(n, await opened().put({ kind: 'request', method, path, headers, body, by, role }))
}

function sendAnswer(n: number, { status, headers, body }: SessionAnswer): void {
  post({ n, kind: 'head', status, headers })
  post({ n, kind: 'piece', bytes: body })
  post({ n, kind: 'end' })
}

/** Reads run concurrently with everything else, and some never end. */
async function read(n: number, request: ForwardedRequest): Promise<void> {
  const app = await opened().world.interface()
  if (app === null) return sendAnswer(n, NO_CONTROLLER)
  const answered = await app.inject({ ...injected({ kind: 'request', ...request }), payloadAsStream: true })
  post({ n, kind: 'head', status: answered.statusCode, headers: textHeaders(answered.headers) })
  sendPieces(n, answered.stream())
}

/** Sends one piece per request: a slow reader is not sent more than it takes. */
function sendPieces(n: number, stream: Readable): void {
  stream.pause()
  let wanted = 0
  let isEnded = false
  const end = (): void => {
    if (isEnded) return
    isEnded = true
    readers.delete(n)
    post({ n, kind: 'end' })
  }
  const send = (): void => {
    while (wanted > 0 && !isEnded) {
      const bytes = stream.read() as Buffer | null
      if (bytes === null) return
      wanted -= 1
      post({ n, kind: 'piece', bytes })
    }
  }
  readers.set(n, {
    more: () => {
      wanted += 1
      send()
    },
    enough: () => {
      stream.destroy()
      end()
    },
  })
  stream.on('readable', send).once('end', end).once('close', end).once('error', end)
}
