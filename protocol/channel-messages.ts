/**
 * Messages about channels into running tasks (`headroom exec`, `headroom port-forward`). The controller
 * asks: it writes and reads frames (channel-frames.ts), and an answer permits the next request.
 */
import { count, flag, integer, list, NO_NUL, oneOf, orNull, record, tagged, text } from './fields.ts'
import type { Value } from './fields.ts'
import { MAX_ARGUMENT_LENGTH, MAX_ARGUMENTS, MAX_CHANNEL_BYTES, MAX_WINDOW_SIZE } from './limits.ts'
import { attempt } from './message-fields.ts'

const channel = text(1, 64, 'Chosen by the controller: random, and never used again')
const data = text(0, Math.ceil(MAX_CHANNEL_BYTES / 3) * 4, 'Whole frames, in base64')

const TerminalWanted = record({
  rows: integer(0, MAX_WINDOW_SIZE, 'Lines of the terminal'),
  columns: integer(0, MAX_WINDOW_SIZE, 'Characters of a line'),
  kind: text(0, 64, 'TERM of the client'),
})
export type TerminalWanted = Value<typeof TerminalWanted>

const ChannelTarget = tagged('kind', {
  exec: record({
    kind: oneOf(['exec']),
    command: list(text(0, MAX_ARGUMENT_LENGTH, undefined, NO_NUL), 1, MAX_ARGUMENTS, 'Command line'),
    terminal: orNull(TerminalWanted, 'Null: three pipes'),
  }),
  port: record({ kind: oneOf(['port']), port: integer(1, 65_535, 'TCP port on which the task listens') }),
})
export type ChannelTarget = Value<typeof ChannelTarget>

// ── controller → node ────────────────────────────────────────────────────────

/** Answered by `channel_opened` or `refused`. */
export const OpenChannel = record({ op: oneOf(['open_channel']), ...attempt, channel, target: ChannelTarget })
export type OpenChannel = Value<typeof OpenChannel>

/** Answered by `channel_written` once the server has room for more. */
export const WriteChannel = record({
  op: oneOf(['write_channel']),
  channel,
  n: count('1, 2, 3, …; a repeated number is the same data'),
  data,
})
export type WriteChannel = Value<typeof WriteChannel>

/** Answered by `channel_data`, after some time also without data. */
export const ReadChannel = record({
  op: oneOf(['read_channel']),
  channel,
  after: count('Number of the last data that arrived; 0: none'),
})
export type ReadChannel = Value<typeof ReadChannel>

/** Published: nothing of the channel remains at the server. */
export const CloseChannel = record({ op: oneOf(['close_channel']), channel })
export type CloseChannel = Value<typeof CloseChannel>

// ── node → controller ────────────────────────────────────────────────────────

export const ChannelOpened = record({ op: oneOf(['channel_opened']), ...attempt, channel })
export type ChannelOpened = Value<typeof ChannelOpened>

export const ChannelWritten = record({
  op: oneOf(['channel_written']),
  channel,
  n: count('As in the request'),
})
export type ChannelWritten = Value<typeof ChannelWritten>

export const ChannelData = record({
  op: oneOf(['channel_data']),
  channel,
  n: count('`after` of the request plus one; without data: `after`'),
  data,
  is_ended: flag('Nothing follows'),
})
export type ChannelData = Value<typeof ChannelData>
