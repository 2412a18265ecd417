package tlsf
import ("testing";"fmt")
func BenchmarkPair(b *testing.B) {
	for _, n := range []int{1024,10<<10,100<<10,500<<10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h,_ := New(make([]byte, 64<<20))
			b.ReportAllocs()
			for b.Loop() { x,err := h.Alloc(n); if err!=nil {b.Fatal()}; if h.Free(x)!=nil {b.Fatal()} }
		})
	}
}
func BenchmarkPairMixed(b *testing.B) {
	h,_ := New(make([]byte, 64<<20))
	var slots [400][]byte
	r := uint32(1)
	b.ReportAllocs()
	for b.Loop() { r ^= r<<13; r^= r>>17; r^= r<<5; i := r%400; if slots[i]!=nil { h.Free(slots[i]); slots[i]=nil } else { slots[i],_ = h.Alloc(16+int(r>>16&0x3ff)) } }
}
