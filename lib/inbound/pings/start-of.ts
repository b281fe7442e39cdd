/** The text that a body begins with; the rest is not read. What is no UTF-8 shows as such. */
export const startOf = async (
  body: ReadableStream<Uint8Array> | null,
  mostBytes: number,
): Promise<string> => {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    if (bytes >= mostBytes) break;
  }
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, mostBytes), { stream: true });
};
