import type { ChannelTarget } from '../../protocol/channel-messages.ts'

/** `refused`: the server's reason. Null: it did not answer. */
export type ChannelAnswer<T> = T | { readonly refused: string } | null

export interface ChannelPiece {
  readonly n: number
  /** Frames (protocol/channel-frames.ts) in base64. */
  readonly data: string
  readonly isEnded: boolean
}

/** Channels into running tasks, at the servers that run them. A channel has an id that the caller chooses. */
export interface TaskChannels {
  open(
    at: { readonly nodeId: string; readonly taskId: string; readonly attempt: number },
    channel: string,
    target: ChannelTarget,
  ): Promise<ChannelAnswer<'opened'>>
  /** The request with this number, from 1; a repeat is the same data. Resolves when there is room again. */
  write(nodeId: string, channel: string, n: number, data: string): Promise<ChannelAnswer<'written'>>
  /** Returns the data after number `after`. Its number is `after` if no data arrived within 2 s. */
  read(nodeId: string, channel: string, after: number): Promise<ChannelAnswer<ChannelPiece>>
  close(nodeId: string, channel: string): void
}
