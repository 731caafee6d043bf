/**
 * All conversations of the protocol: subject, requester, requests and answers. The AsyncAPI document is
 * generated from this list and the schemas of the messages. The list does not compile when it lacks an
 * operation.
 */
import type { Body } from './envelope.ts'
import { clientSubject, leaderSubject, nodeSubject } from './subjects.ts'

export type Operation = Body['op']

/** The side that sends the request; the other side answers. */
export type Requester = 'node' | 'client' | 'controller'

export interface Conversation {
  readonly name: string
  /** With `{node_id}` in place of the node's id. */
  readonly subject: string
  readonly requester: Requester
  /** The request is one of these. */
  readonly requests: readonly Operation[]
  /** The answer is one of these. Empty: the message is published to all subscribers. */
  readonly answers: readonly Operation[]
  readonly meaning: string
}

/** The meaning of each parameter in braces. */
export const SUBJECT_PARAMETERS: Readonly<Record<string, string>> = {
  client_id:
    'The id under which the broker knows the client. The client sees and cancels only the tasks that it ' +
    'submitted.',
  node_id: "The node's UUID, as in its credential. A payload that names another node is refused.",
}

const NODE = '{node_id}'
const CLIENT = '{client_id}'

export const CONVERSATIONS = withEveryOperation([
  {
    name: 'hello',
    subject: nodeSubject(NODE, 'hello'),
    requester: 'node',
    requests: ['hello'],
    answers: ['welcome', 'state_reset', 'refused'],
    meaning:
      'A server has started, or the controller does not know it: the server reports what it is and ' +
      'which attempts it has. Repeated until welcome.',
  },
  {
    name: 'heartbeat',
    subject: nodeSubject(NODE, 'heartbeat'),
    requester: 'node',
    requests: ['heartbeat'],
    answers: ['lease', 'state_reset', 'refused'],
    meaning:
      'The server is alive and reports its attempts. The answer is its run lease, which starts at the time ' +
      'at which the heartbeat was sent.',
  },
  {
    name: 'events',
    subject: nodeSubject(NODE, 'event'),
    requester: 'node',
    requests: ['events'],
    answers: ['events_ack', 'state_reset', 'refused'],
    meaning:
      'Events of the node, from its outbox, in order. Repeated until acknowledged; acknowledged once ' +
      "durable in the controller's store.",
  },
  {
    name: 'command',
    subject: nodeSubject(NODE, 'command'),
    requester: 'controller',
    requests: ['start', 'prepare', 'stop', 'swap_out', 'swap_in', 'grant', 'refuse_growth', 'set_noswap'],
    answers: ['result'],
    meaning:
      "An order to the server. It expires by the node's own clock. A repeated order is answered with " +
      'what the node knows about that attempt.',
  },
  {
    name: 'read_attempt',
    subject: nodeSubject(NODE, 'command'),
    requester: 'controller',
    requests: ['read_attempt'],
    answers: ['attempt', 'refused'],
    meaning:
      'What the server recorded about an attempt that lives there, for an administrator who adopts it, ' +
      'and where clients reach its ports. Read only.',
  },
  {
    name: 'read_log',
    subject: nodeSubject(NODE, 'command'),
    requester: 'controller',
    requests: ['read_log'],
    answers: ['log', 'refused'],
    meaning: "A piece of a task's output. Read only, so it may be requested at any time.",
  },
  {
    name: 'list_files',
    subject: nodeSubject(NODE, 'command'),
    requester: 'controller',
    requests: ['list_files'],
    answers: ['files', 'refused'],
    meaning: 'Files in the work folder of an attempt that lives there or has ended there. Read only.',
  },
  {
    name: 'read_file',
    subject: nodeSubject(NODE, 'command'),
    requester: 'controller',
    requests: ['read_file'],
    answers: ['file', 'refused'],
    meaning: 'A piece of a file in the work folder of an attempt. Read only.',
  },
  {
    name: 'read_blob',
    subject: nodeSubject(NODE, 'telemetry'),
    requester: 'node',
    requests: ['read_blob'],
    answers: ['blob', 'refused'],
    meaning:
      'A piece of the uploaded folder of a task that is placed on this node and has not ended; all others ' +
      'are refused and audited. Read only. The subject is one that servers of all versions may use.',
  },
  {
    name: 'expect_process',
    subject: nodeSubject(NODE, 'command'),
    requester: 'controller',
    requests: ['expect_process'],
    answers: ['process_expected', 'refused'],
    meaning:
      'The owner of a lease on that node wants to register a process of the host for it. Sent to servers ' +
      'with the feature `attach` only.',
  },
  {
    name: 'open_channel',
    subject: nodeSubject(NODE, 'command'),
    requester: 'controller',
    requests: ['open_channel'],
    answers: ['channel_opened', 'refused'],
    meaning:
      'The owner of a task that is in VRAM there wants to run a command in it, or to connect to a port on ' +
      'which it listens. Sent to servers with the feature `channels` only.',
  },
  {
    name: 'write_channel',
    subject: nodeSubject(NODE, 'command'),
    requester: 'controller',
    requests: ['write_channel'],
    answers: ['channel_written', 'refused'],
    meaning: 'Bytes for an open channel, one request at a time; repeated until it is answered.',
  },
  {
    name: 'read_channel',
    subject: nodeSubject(NODE, 'command'),
    requester: 'controller',
    requests: ['read_channel'],
    answers: ['channel_data', 'refused'],
    meaning:
      'Bytes from an open channel, one request at a time. A channel that is not read for 15 s is closed by ' +
      'the server.',
  },
  {
    name: 'close_channel',
    subject: nodeSubject(NODE, 'command'),
    requester: 'controller',
    requests: ['close_channel'],
    answers: [],
    meaning: 'The client has gone: the server ends what runs for the channel.',
  },
  {
    name: 'leader',
    subject: leaderSubject(),
    requester: 'controller',
    requests: ['leader'],
    answers: [],
    meaning:
      'Every 2 s, and more often at first: the current epoch and the leading process. A hint: a server ' +
      'that hears of a higher epoch than it obeys reports soon, and obeys that controller once it has ' +
      'answered.',
  },
  {
    name: 'submit',
    subject: clientSubject(CLIENT, 'submit'),
    requester: 'client',
    requests: ['submit'],
    answers: ['task', 'refused'],
    meaning:
      'A client requests GPU time. Answered once the task is durable; a repeat with the same message id ' +
      'is the same task.',
  },
  {
    name: 'cancel',
    subject: clientSubject(CLIENT, 'cancel'),
    requester: 'client',
    requests: ['cancel'],
    answers: ['task', 'refused'],
    meaning: 'Cancels a task: a pending task is cancelled at once, a placed task is stopped by its server.',
  },
  {
    name: 'get',
    subject: clientSubject(CLIENT, 'get'),
    requester: 'client',
    requests: ['get'],
    answers: ['task', 'refused'],
    meaning: 'The state of a task, and why it waits.',
  },
  {
    name: 'keepalive',
    subject: clientSubject(CLIENT, 'keepalive'),
    requester: 'client',
    requests: ['keepalive'],
    answers: ['task', 'refused'],
    meaning: 'Extends a lease, busy or idle. A lease without keepalives is cancelled.',
  },
])

/** Returns the list; does not compile when an operation of `envelope.ts` is missing. */
function withEveryOperation<const C extends readonly Conversation[]>(
  conversations: [Exclude<Operation, C[number]['requests' | 'answers'][number]>] extends [never] ? C : never,
): readonly Conversation[] {
  return conversations
}
