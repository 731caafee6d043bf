/** An empty cluster: what to do next. */
import type { JSX } from 'solid-js'
import { ServerLine } from '../../components/server-line.tsx'

export function FirstSteps(): JSX.Element {
  return (
    <section class="card" aria-label="First steps">
      <h2>No GPU server has registered yet</h2>
      <p>Point one at the same message broker as this controller. On the GPU host:</p>
      <ServerLine />
      <p>
        It shows up here within seconds. To look around without GPUs, start the controller without
        CONTROLLER_NATS_URL: it brings a simulated fleet.
      </p>
    </section>
  )
}
