import type { DurationMs } from '../../protocol/units.ts'
import type { Envelope } from '../../protocol/envelope.ts'

/**
 * Why a request got no answer. `disconnected`: it may or may not have arrived. `unsendable`: it is too large,
 * or too many messages wait to be sent.
 */
export type NoAnswer = 'timeout' | 'no_responder' | 'disconnected' | 'unsendable'
export type RequestOutcome =
  | { readonly answered: true; readonly answer: Envelope }
  | { readonly answered: false; readonly why: NoAnswer }

/** Answers a request. Does nothing when called twice or for a published message. */
export type Reply = (answer: Envelope) => void
export type Handler = (message: Envelope, subject: string, reply: Reply) => void

/**
 * Messages between controller and GPU servers. Callbacks, not promises: in virtual time nothing may depend on
 * the microtask queue. Delivery is at most once; reliable senders retry with the same message id (protocol
 * principle 2). Subjects follow NATS: tokens separated by dots, `*` matches one token in a subscription.
 */
export interface Bus {
  publish(subject: string, message: Envelope): void
  request(
    subject: string,
    message: Envelope,
    timeoutMs: DurationMs,
    done: (outcome: RequestOutcome) => void,
  ): void
  /** @returns a function that ends the subscription */
  subscribe(pattern: string, handler: Handler): () => void
  /**
   * Reports when the connection to the broker is lost or restored, and after the call if it is lost. Omitted:
   * it is never lost.
   * @returns a function that ends it
   */
  onConnection?(listener: (isConnected: boolean) => void): () => void
  /** Delivers messages in flight, then closes. */
  drain(): Promise<void>
}
