import type { ChannelTarget } from '../../protocol/channel-messages.ts'

/** Why there is no channel: a code of the protocol, or a text of the host. */
export interface ChannelRefused {
  readonly refused: string
}

export interface ChannelPiece {
  readonly n: number
  readonly base64: string
  readonly isEnded: boolean
}

/** Channels into attempts that run on this host. No answer comes within the call. */
export interface ChannelsPort {
  /** A repeat with the same target opens no other channel, and is answered as the first call. */
  open(
    attempt: { readonly taskId: string; readonly attempt: number },
    channel: string,
    target: ChannelTarget,
    done: (refused: ChannelRefused | null) => void,
  ): void
  /** Answers once there is room for more; a repeat replaces the callback of the call before. */
  write(channel: string, n: number, base64: string, done: (refused: ChannelRefused | null) => void): void
  /** Answers within 2 s, also without data; a repeat replaces the callback of the call before. */
  read(channel: string, after: number, done: (piece: ChannelPiece | ChannelRefused) => void): void
  close(channel: string): void
}
