export default function X() {
  return <h1>Nodes</h1>
}
