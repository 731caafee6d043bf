/** Returns a version 4 UUID from a stream of random numbers in [0, 1). */
export function uuidFrom(random: () => number): string {
  let hex = ''
  for (let i = 0; i < 8; i++) hex += (65536 + Math.floor(random() * 65536)).toString(16).slice(1)
  const variant = '89ab'[Number.parseInt(hex[16] as string, 16) & 3] as string
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
