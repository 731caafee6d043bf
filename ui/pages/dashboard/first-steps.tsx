/** An empty cluster: what to do next. */
import type { JSX } from 'solid-js'

export function FirstSteps(): JSX.Element {
  return (
    <section class="card" aria-label="First steps">
      <h2>No GPU server has registered yet</h2>
      <p>Point one at the same message broker as this controller. On the GPU host:</p>
      <pre tabindex="0">CONTROLLER_NATS_URL=nats://{location.hostname}:4222 headroom gpu-server --allow-exec</pre>
      <p>
        It shows up here within seconds. To look around without GPUs, start the controller without CONTROLLER_NATS_URL: it brings a
        simulated fleet.
      </p>
    </section>
  )
}
