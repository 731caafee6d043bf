/** An empty cluster: the next steps. */
import type { JSX } from 'solid-js'
import { ServerLine } from '../../components/server-line.tsx'

export function FirstSteps(): JSX.Element {
  return (
    <section class="card" aria-label="First steps">
      <h2>No GPU servers are registered yet</h2>
      <p>Connect a GPU server to the message broker of this controller. On the GPU host:</p>
      <ServerLine />
      <p>
        The server appears here within seconds. To try Headroom without GPUs, start the controller without
        CONTROLLER_NATS_URL. The controller then runs a simulated fleet.
      </p>
    </section>
  )
}
