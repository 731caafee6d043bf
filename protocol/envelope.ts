/** The envelope of every message, and all operations. */
import {
  ChannelData,
  ChannelOpened,
  ChannelWritten,
  CloseChannel,
  OpenChannel,
  ReadChannel,
  WriteChannel,
} from './channel-messages.ts'
import { CLIENT_BODIES } from './client-messages.ts'
import type { ClientBody, TaskAnswer } from './client-messages.ts'
import { count, oneOf, optional, record, tagged, text } from './fields.ts'
import type { Value } from './fields.ts'
import { Blob, FileList, FilePiece, ListFiles, ReadBlob, ReadFile } from './file-messages.ts'
import { PROTOCOL_VERSION } from './limits.ts'
import { Boot, id } from './message-fields.ts'
import {
  AttemptRecord,
  CommandResult,
  EventsAck,
  ExpectProcess,
  GrantCommand,
  Heartbeat,
  Hello,
  Leader,
  Lease,
  LogChunk,
  NodeEvents,
  PrepareCommand,
  ProcessExpected,
  ReadAttempt,
  ReadLog,
  Refused,
  StateReset,
  StopCommand,
  SwapCommand,
  Welcome,
} from './messages.ts'
import { StartCommand } from './start-command.ts'
import type { Command } from './messages.ts'

export type NodeBody =
  | Hello
  | Heartbeat
  | NodeEvents
  | CommandResult
  | LogChunk
  | AttemptRecord
  | ReadBlob
  | FileList
  | FilePiece
  | ProcessExpected
  | ChannelOpened
  | ChannelWritten
  | ChannelData
  | Refused
export type ControllerBody =
  | Welcome
  | Lease
  | EventsAck
  | StateReset
  | Command
  | ReadLog
  | ReadAttempt
  | ExpectProcess
  | ListFiles
  | ReadFile
  | OpenChannel
  | WriteChannel
  | ReadChannel
  | CloseChannel
  | Blob
  | Leader
  | Refused
  | TaskAnswer
export type Body = NodeBody | ControllerBody | ClientBody

/** All operations by name; a message names exactly one. */
export const BODIES = {
  hello: Hello,
  heartbeat: Heartbeat,
  events: NodeEvents,
  result: CommandResult,
  log: LogChunk,
  attempt: AttemptRecord,
  read_attempt: ReadAttempt,
  read_log: ReadLog,
  list_files: ListFiles,
  files: FileList,
  read_file: ReadFile,
  file: FilePiece,
  read_blob: ReadBlob,
  blob: Blob,
  expect_process: ExpectProcess,
  process_expected: ProcessExpected,
  open_channel: OpenChannel,
  channel_opened: ChannelOpened,
  write_channel: WriteChannel,
  channel_written: ChannelWritten,
  read_channel: ReadChannel,
  channel_data: ChannelData,
  close_channel: CloseChannel,
  welcome: Welcome,
  lease: Lease,
  events_ack: EventsAck,
  state_reset: StateReset,
  refused: Refused,
  leader: Leader,
  start: StartCommand,
  prepare: PrepareCommand,
  stop: StopCommand,
  swap_out: SwapCommand,
  swap_in: SwapCommand,
  grant: GrantCommand,
  refuse_growth: GrantCommand,
  set_noswap: GrantCommand,
  ...CLIENT_BODIES,
} satisfies Readonly<Record<Body['op'], unknown>>

const head = {
  v: oneOf([PROTOCOL_VERSION]),
  id: id('Equal on every retry'),
  sent_mono: count("The sender's monotonic milliseconds"),
  boot: Boot,
  seq: count('Number of the message within this boot of the sender'),
  epoch: count(
    "The controller's fencing token. From a node: the highest that it has obeyed; 0 when it knows none",
  ),
  controller: optional(
    text(
      1,
      64,
      'ID of the controller process of this epoch; it changes at each start. Absent: not known, or ' +
        'the sender ' +
        'predates the field',
    ),
  ),
  event_seq: optional(
    count(
      'Sequence number of the last durable event of this epoch; from a node: the highest that it received. ' +
        'Absent as controller',
    ),
  ),
}

/** The envelope of every body. */
export const ENVELOPE_HEAD = record(head)

export interface Envelope<B extends Body = Body> extends Value<typeof ENVELOPE_HEAD> {
  readonly body: B
}

/** The version comes first: a message of another version is not checked any further. */
export const ENVELOPE = record({ ...head, body: tagged('op', BODIES) })
