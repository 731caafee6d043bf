/**
 * Who says what to whom on which subject, and what may come back. The AsyncAPI document is made from this
 * list and the tables in `schema.ts`; an operation that stands nowhere in it does not compile.
 */
import type { Body } from './messages.ts'
import { clientSubject, leaderSubject, nodeSubject } from './subjects.ts'

export type Operation = Body['op']

/** Who sends the request; the other side answers. */
export type Asker = 'node' | 'client' | 'controller'

export interface Conversation {
  readonly name: string
  /** With `{node_id}` where the node's id stands. */
  readonly subject: string
  readonly asker: Asker
  /** One of these is the request. */
  readonly says: readonly Operation[]
  /** One of these is the answer; none: it is published to whoever listens. */
  readonly answers: readonly Operation[]
  readonly meaning: string
}

/** What stands in braces in a subject, by name. */
export const SUBJECT_PARAMETERS: Readonly<Record<string, string>> = {
  client_id:
    'The id under which the broker knows the client. It sees and cancels the tasks that it has submitted, and no others.',
  node_id: "The node's UUID, the one of its credential. A payload that names another node is refused.",
}

const NODE = '{node_id}'
const CLIENT = '{client_id}'

export const CONVERSATIONS = withEveryOperation([
  {
    name: 'hello',
    subject: nodeSubject(NODE, 'hello'),
    asker: 'node',
    says: ['hello'],
    answers: ['welcome', 'state_reset', 'refused'],
    meaning:
      'A server has started, or is told that the controller does not know it: what it is and what lives on it. Repeated until welcome.',
  },
  {
    name: 'heartbeat',
    subject: nodeSubject(NODE, 'heartbeat'),
    asker: 'node',
    says: ['heartbeat'],
    answers: ['lease', 'state_reset', 'refused'],
    meaning:
      'The server is alive, and this lives on it. The answer is its run lease, counted from when the heartbeat was sent.',
  },
  {
    name: 'events',
    subject: nodeSubject(NODE, 'event'),
    asker: 'node',
    says: ['events'],
    answers: ['events_ack', 'state_reset', 'refused'],
    meaning:
      "What happened on the node, from its outbox, in order. Repeated until acknowledged, which is once it is durable in the controller's store.",
  },
  {
    name: 'command',
    subject: nodeSubject(NODE, 'command'),
    asker: 'controller',
    says: ['start', 'stop', 'swap_out', 'swap_in', 'grant', 'refuse_growth', 'set_noswap'],
    answers: ['result'],
    meaning:
      "What the server is to do. It dies on the node's own clock; a repeated one is answered with what the node knows of that attempt.",
  },
  {
    name: 'read_attempt',
    subject: nodeSubject(NODE, 'command'),
    asker: 'controller',
    says: ['read_attempt'],
    answers: ['attempt', 'refused'],
    meaning:
      'What the server recorded of an attempt that lives there, for an administrator who adopts it. It changes nothing.',
  },
  {
    name: 'read_log',
    subject: nodeSubject(NODE, 'command'),
    asker: 'controller',
    says: ['read_log'],
    answers: ['log', 'refused'],
    meaning: "A piece of a task's output. It changes nothing, so it may be asked at any time.",
  },
  {
    name: 'leader',
    subject: leaderSubject(),
    asker: 'controller',
    says: ['leader'],
    answers: [],
    meaning: 'Every 2 s: which epoch holds, and which process leads. Nothing rests on it.',
  },
  {
    name: 'submit',
    subject: clientSubject(CLIENT, 'submit'),
    asker: 'client',
    says: ['submit'],
    answers: ['task', 'refused'],
    meaning:
      'A client asks for GPU time. Answered once the task is durable; repeated with the same message id, it is the same task.',
  },
  {
    name: 'cancel',
    subject: clientSubject(CLIENT, 'cancel'),
    asker: 'client',
    says: ['cancel'],
    answers: ['task', 'refused'],
    meaning:
      'A task is not wanted any more: a pending one is cancelled at once, a placed one is stopped by its server.',
  },
  {
    name: 'get',
    subject: clientSubject(CLIENT, 'get'),
    asker: 'client',
    says: ['get'],
    answers: ['task', 'refused'],
    meaning: 'What has become of a task, and why it waits.',
  },
  {
    name: 'keepalive',
    subject: clientSubject(CLIENT, 'keepalive'),
    asker: 'client',
    says: ['keepalive'],
    answers: ['task', 'refused'],
    meaning: 'A lease goes on, busy or idle. One that nobody keeps alive is cancelled.',
  },
])

/** Takes the list as it is; one in which an operation of `messages.ts` is missing has no type that fits. */
function withEveryOperation<const C extends readonly Conversation[]>(
  conversations: [Exclude<Operation, C[number]['says' | 'answers'][number]>] extends [never] ? C : never,
): readonly Conversation[] {
  return conversations
}
