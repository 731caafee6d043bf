/** Channels into running tasks (docs/protocol.md, "Channels"), for servers with this feature. */
import type { ChannelTarget } from '../../../protocol/channel-messages.ts'
import { encodeFrame, endIn, FRAME, FrameReader } from '../../../protocol/channel-frames.ts'
import type { ControllerBody, NodeBody } from '../../../protocol/envelope.ts'
import type { Examiner } from './examiner.ts'
import type { Finding, Rule } from './rule.ts'
import { ended, running, said, SOON_MS } from './orders.ts'

/** It lives until it is stopped. */
const TASK = ['sleep', '3600']
/** Repeats its input, says something on both outputs, and has an exit code of its own. */
const ECHO: ChannelTarget = {
  kind: 'exec',
  command: ['sh', '-c', 'cat; echo told >&2; exit 7'],
  terminal: null,
}
/** Discard: no test program listens there. */
const CLOSED_PORT = 9
const INPUT = 'some input'

export const CHANNEL_RULES: readonly Rule[] = [
  {
    rule: 'Channels',
    feature: 'channels',
    claim: 'no channel opens into an unknown attempt or into a lease, and none is written or read unopened',
    async examine(e) {
      const lease = await running(e)
      if (typeof lease === 'string') return lease
      const asked: readonly (readonly [what: string, body: ControllerBody])[] = [
        ['into an unknown attempt', opening(e, 'conformance-unknown')],
        ['into a lease', opening(e, lease.taskId)],
        ['that was never opened, on write', { op: 'write_channel', channel: channelOf(e), n: 1, data: '' }],
        ['that was never opened, on read', { op: 'read_channel', channel: channelOf(e), after: 0 }],
      ]
      for (const [what, body] of asked) {
        const answer = await e.ask(body)
        if (answer?.op !== 'refused') return `a channel ${what} was answered ${wordOf(answer)}`
      }
      return ended(e, lease.taskId)
    },
  },
  {
    rule: 'Channels',
    feature: 'channels',
    claim: 'a command gets its input once, also when it is repeated, and its outputs and exit code arrive',
    examine: (e) =>
      inTask(e, async (taskId) => {
        const open = opening(e, taskId, ECHO)
        const answer = await e.ask(open)
        if (answer?.op !== 'channel_opened') return `it was answered ${wordOf(answer)}`
        // An id is used once: whatever the answer, no second command begins.
        await e.ask(open)
        const { channel } = open
        const [first, last] = [encodeFrame(FRAME.data, bytesOf(INPUT)), encodeFrame(FRAME.end, bytesOf(''))]
        for (const [n, frame] of [
          [1, first],
          [1, first],
          [2, last],
        ] as const) {
          const answer = await e.ask({ op: 'write_channel', channel, n, data: base64Of(frame) })
          if (answer?.op !== 'channel_written' || answer.n !== n)
            return `data number ${n} was answered ${wordOf(answer)}`
        }
        const read = await readToEnd(e, channel)
        if (typeof read === 'string') return read
        const { out, errors, end } = read
        return out === INPUT && errors === 'told\n' && end === 'code 7'
          ? null
          : `output ${JSON.stringify(out)}, errors ${JSON.stringify(errors)}, end ${JSON.stringify(end)}`
      }),
  },
  {
    rule: 'Channels',
    feature: 'channels',
    claim: 'a port on which no process of the task listens is refused',
    examine: (e) =>
      inTask(e, async (taskId) => {
        const answer = await e.ask(opening(e, taskId, { kind: 'port', port: CLOSED_PORT }))
        return answer?.op === 'refused' ? null : `it was answered ${wordOf(answer)}`
      }),
  },
  {
    rule: 'Channels',
    feature: 'channels',
    claim: 'a channel ends with its task',
    async examine(e) {
      const task = await started(e)
      if (typeof task !== 'object' || 'notTested' in task) return task
      const open = opening(e, task.taskId, { kind: 'exec', command: TASK, terminal: null })
      const answer = await e.ask(open)
      const failure = await ended(e, task.taskId)
      if (answer?.op !== 'channel_opened') return `it was answered ${wordOf(answer)}`
      if (failure !== null) return failure
      const read = await readToEnd(e, open.channel)
      return typeof read === 'string' && !read.startsWith('refused') ? read : null
    },
  },
]

type Started = { readonly taskId: string } | string | { readonly notTested: string }

async function started(e: Examiner): Promise<Started> {
  if (!e.allowsCommands) return { notTested: 'the server runs no commands' }
  return running(e, { command: TASK })
}

/** With a task that runs a command; it is stopped afterwards. */
async function inTask(e: Examiner, look: (taskId: string) => Promise<Finding>): Promise<Finding> {
  const task = await started(e)
  if (typeof task !== 'object' || 'notTested' in task) return task
  const finding = await look(task.taskId)
  const failure = await ended(e, task.taskId)
  return finding ?? failure
}

function opening(e: Examiner, taskId: string, target = ECHO) {
  return { op: 'open_channel', task_id: taskId, attempt: 1, channel: channelOf(e), target } as const
}

function channelOf(e: Examiner): string {
  e.taskCount += 1
  return `conformance-${e.epoch}-${e.taskCount}`
}

interface Read {
  readonly out: string
  readonly errors: string
  readonly end: string
}

/** Each read is repeated once: the answer must be the same. A string says what went wrong. */
async function readToEnd(e: Examiner, channel: string): Promise<Read | string> {
  const frames = new FrameReader()
  const read = { out: '', errors: '', end: '' }
  const untilAt = e.now + SOON_MS
  for (let after = 0; e.now < untilAt;) {
    const answers = [await e.ask({ op: 'read_channel', channel, after })]
    if (answers[0]?.op === 'channel_data' && answers[0].data !== '' && !answers[0].is_ended)
      answers.push(await e.ask({ op: 'read_channel', channel, after }))
    const [answer, repeat] = answers
    if (answer?.op !== 'channel_data') return `refused: a read was answered ${wordOf(answer ?? null)}`
    if (repeat !== undefined && JSON.stringify(repeat) !== JSON.stringify(answer))
      return 'a repeated read was answered with other data'
    if (answer.data === '' ? answer.n !== after : answer.n !== after + 1)
      return `data after ${after} has number ${answer.n}`
    after = answer.n
    for (const { kind, content } of frames.take(Uint8Array.from(Buffer.from(answer.data, 'base64')))) {
      const text = new TextDecoder().decode(content)
      if (kind === FRAME.data) read.out += text
      else if (kind === FRAME.errors) read.errors += text
      else if (kind === FRAME.ended)
        read.end = endIn(content).kind === 'exit' ? text : `not by itself: ${text}`
    }
    if (answer.is_ended) return read
  }
  return `its end did not arrive within ${SOON_MS / 1000} s`
}

function wordOf(answer: NodeBody | null): string {
  if (answer?.op === 'result') return said(answer)
  return answer === null
    ? 'nothing'
    : answer.op === 'refused'
      ? `'refused: ${answer.reason}'`
      : `'${answer.op}'`
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
