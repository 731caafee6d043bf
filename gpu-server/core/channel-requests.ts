/** Requests of the controller about channels into attempts. A restart preserves nothing of them. */
import type { CloseChannel, OpenChannel, ReadChannel, WriteChannel } from '../../protocol/channel-messages.ts'
import type { Body, Envelope, NodeBody } from '../../protocol/envelope.ts'
import type { Reply } from '../../controller/ports/bus.ts'
import type { ChannelsPort } from './channels-port.ts'
import type { ControllerMark } from './durable-state.ts'
import type { Parts } from './parts.ts'

type ChannelRequest = OpenChannel | WriteChannel | ReadChannel | CloseChannel

export function isOfChannel(body: Body): body is ChannelRequest {
  return (
    body.op === 'open_channel' ||
    body.op === 'write_channel' ||
    body.op === 'read_channel' ||
    body.op === 'close_channel'
  )
}

export class ChannelRequests {
  readonly #parts: Parts
  readonly #channels: ChannelsPort | null

  /** @param channels null: this server opens none */
  constructor(parts: Parts, channels: ChannelsPort | null) {
    this.#parts = parts
    this.#channels = channels
  }

  answer(message: Envelope, body: ChannelRequest, reply: Reply): void {
    const send = (answer: NodeBody): void => reply(this.#parts.envelopes.seal(answer))
    const channels = this.#channels
    if (channels === null) return send({ op: 'refused', reason: 'channels_not_allowed' })
    const { channel } = body
    switch (body.op) {
      case 'open_channel':
        return this.#open(channels, message, body, send)
      case 'write_channel': {
        const { n, data } = body
        return channels.write(channel, n, data, (refused) =>
          send(refused === null ? { op: 'channel_written', channel, n } : refusal(refused.refused)),
        )
      }
      case 'read_channel':
        return channels.read(channel, body.after, (piece) => {
          if ('refused' in piece) return send(refusal(piece.refused))
          const { n, base64, isEnded } = piece
          send({ op: 'channel_data', channel, n, data: base64, is_ended: isEnded })
        })
      case 'close_channel':
        return channels.close(channel)
    }
  }

  #open(
    channels: ChannelsPort,
    mark: ControllerMark,
    { task_id, attempt, channel, target }: OpenChannel,
    send: (answer: NodeBody) => void,
  ): void {
    const why = this.#whyNot(mark, task_id, attempt)
    if (why !== null) return send(refusal(why))
    channels.open({ taskId: task_id, attempt }, channel, target, (refused) =>
      send(refused === null ? { op: 'channel_opened', task_id, attempt, channel } : refusal(refused.refused)),
    )
  }

  #whyNot(mark: ControllerMark, taskId: string, attempt: number): string | null {
    const { durable, tasks } = this.#parts
    if (durable.isOfOtherController(mark)) return 'stale_epoch'
    const living = tasks.find(taskId, attempt)
    if (living === null || living.isLease) return 'unknown_attempt'
    return living.residency === 'resident' ? null : 'not_in_vram'
  }
}

/** A text of the host may be longer than a reason. */
function refusal(reason: string): NodeBody {
  return { op: 'refused', reason: reason.replace(/[\u0000-\u001f\u007f]/g, ' ').slice(0, MAX_REASON) }
}

const MAX_REASON = 200
